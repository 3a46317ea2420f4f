package analyzer

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// TestStacksAddUp: the rows of a stack set are the level, whatever was retired meanwhile.
func TestStacksAddUp(t *testing.T) {
	for seed := range uint64(60) {
		labels := seed%3 == 0
		src := &memorySource{
			events: randomStream(seed, streamShape{events: 500, wild: true, delayed: func(trace.Event) bool {
				return true
			}})}
		fillTables(&src.tables)
		p, err := NewProfile(src, Options{Question: Question{Groupings: []string{"tag", "api", "thread"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range p.replayer.accounts.details {
			if d != nil {
				d.Cells.Keep = int(1 + 20*(seed%2))
			}
		}
		s, err := soFar(p)
		if err != nil {
			t.Fatal(err)
		}
		for name, level := range map[string]report.Level{"framework": s.Framework, "driver": s.Driver} {
			var sum report.Level
			// bytes at the peak, by tag, by call and by thread, of which two have the same name
			byLabel := []map[string]uint64{{}, {}, {}}
			seen := make(map[string]bool)
			for _, r := range about(t, p).stackSet(s, name, labels).Rows {
				sum.PeakBytes += r.PeakBytes
				sum.LiveBytes += r.LiveBytes
				sum.AllocBytes += r.AllocBytes
				sum.AllocCount += r.AllocCount
				sum.FreeCount += r.FreeCount
				key := fmt.Sprintf("%#x %q", r.Key, r.Labels)
				if seen[key] || !labels && r.Labels != nil {
					t.Errorf("seed %d: two %s rows of stack %s", seed, name, key)
				}
				seen[key] = true
				for i, label := range r.Labels {
					byLabel[i][label] += r.PeakBytes
				}
			}
			level.PeakTimeNS, level.FailedCount, level.PeakBytesLower, level.LiveBytesLower = 0, 0, nil, nil
			if sum != level {
				t.Errorf("seed %d: %s stacks add up to %+v, want %+v", seed, name, sum, level)
			}
			for i, by := range []string{"tag", "api", "thread"} {
				for _, row := range groupRows(s.Group(by, name)) {
					if labels && byLabel[i][row.Key] != row.PeakBytes {
						t.Errorf("seed %d: %s rows labelled with the %s %s add up to %d, want %d", seed, name, by,
							row.Key, byLabel[i][row.Key], row.PeakBytes)
					}
				}
			}
		}
	}
}

func groupRows(g *report.Group) []report.Row {
	if g == nil {
		return nil
	}
	return g.Rows
}

// about is what answers the question of a profile's options.
func about(t *testing.T, p *Profile) *query {
	t.Helper()
	a, err := p.query(&p.opts.Question)
	if err != nil {
		t.Fatal(err)
	}
	return a
}
