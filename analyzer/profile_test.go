package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// soFar replays what is new, and answers the question of the options.
func soFar(p *Profile) (*report.Summary, error) {
	if err := p.Update(); err != nil {
		return nil, err
	}
	return p.Report(p.opts.Question)
}

// At every moment of a growing trace, a Profile says what a summary of the trace so far says: nothing counts twice, and
// asking changes nothing.
func TestProfileIsTheSummarySoFar(t *testing.T) {
	for seed := range uint64(20) {
		events := randomStream(seed, streamShape{events: 400, wild: seed%2 == 1, delayed: func(trace.Event) bool {
			return seed%3 == 0
		}})
		growing := &memorySource{batch: 37}
		fillTables(&growing.tables)
		opts := Options{Question: Question{At: must(moment.Parse("exit")), Groupings: profile.GroupingNames()}}
		p, err := NewProfile(growing, opts)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, 1, 1, 50, 51, 300, len(events), len(events)} {
			n = min(n, len(events))
			growing.events = events[:n]
			got, err := soFar(p)
			if err != nil {
				t.Fatal(err)
			}
			whole := &memorySource{events: events[:n]}
			fillTables(&whole.tables)
			want, err := Summarize(whole, opts)
			if err != nil {
				t.Fatal(err)
			}
			if g, w := asJSON(t, got), asJSON(t, want); g != w {
				t.Fatalf("seed %d, %d events: %s", seed, n, difference(g, w))
			}
		}
	}
}

func TestProfileUnknownGrouping(t *testing.T) {
	if _, err := NewProfile(&memorySource{}, Options{Question: Question{Groupings: []string{"colour"}}}); err == nil {
		t.Error("an unknown grouping is taken")
	}
}
