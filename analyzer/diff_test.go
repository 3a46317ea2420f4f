package analyzer

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// TestDiffOfOneRunIsEmpty: a run compared with itself has changed nowhere.
func TestDiffOfOneRunIsEmpty(t *testing.T) {
	for seed := range uint64(20) {
		src := &memorySource{events: randomStream(seed, streamShape{events: 300, wild: true}), end: &trace.End{}}
		fillTables(&src.tables)
		s, err := Summarize(src, Options{Question: Question{Groupings: profile.GroupingNames()}})
		if err != nil {
			t.Fatal(err)
		}
		d := diff.New(s, s)
		for _, l := range d.Levels {
			if l.PeakBytes.Delta != 0 || l.LiveBytes.Delta != 0 || l.AllocCount.Delta != 0 || l.AllocBytes.Delta != 0 ||
				l.FailedCount.Delta != 0 {
				t.Errorf("seed %d: %+v", seed, l)
			}
		}
		if len(d.Levels) == 0 || len(d.Groups) == 0 {
			t.Errorf("seed %d: nothing compared", seed)
		}
		for _, g := range d.Groups {
			for _, r := range g.Rows {
				if r.State != diff.StateSame {
					t.Errorf("seed %d: %s %s %+v", seed, g.Level, g.By, r)
				}
			}
		}
	}
}

// TestDiffAddsUp: the changes of the rows add up to the change of the level, and swapping the runs turns every sign.
func TestDiffAddsUp(t *testing.T) {
	for seed := range uint64(20) {
		var sides [2]*report.Summary
		for i := range sides {
			src := &memorySource{events: randomStream(2*seed+uint64(i), streamShape{events: 200 + 200*i, wild: true})}
			fillTables(&src.tables)
			s, err := Summarize(src, Options{Question: Question{Groupings: profile.GroupingNames()}})
			if err != nil {
				t.Fatal(err)
			}
			sides[i] = s
		}
		d, back := diff.New(sides[0], sides[1]), diff.New(sides[1], sides[0])
		for i, g := range d.Groups {
			var peak, live, count int64
			growth := int64(1 << 62)
			reverse := make(map[string]diff.Row)
			for _, r := range back.Groups[i].Rows {
				reverse[r.Key] = r
			}
			for _, r := range g.Rows {
				peak, live, count = peak+r.PeakBytes.Delta, live+r.LiveBytes.Delta, count+r.AllocCount.Delta
				if r.PeakBytes.Delta > growth {
					t.Errorf("seed %d: %s by %s: %s out of order", seed, g.Level, g.By, r.Key)
				}
				growth = r.PeakBytes.Delta
				if reverse[r.Key].PeakBytes.Delta != -r.PeakBytes.Delta {
					t.Errorf("seed %d: %s by %s: %s is not the reverse", seed, g.Level, g.By, r.Key)
				}
			}
			b, n := sides[0].Driver, sides[1].Driver
			if g.Level == "framework" {
				b, n = sides[0].Framework, sides[1].Framework
			}
			if peak != int64(n.PeakBytes-b.PeakBytes) || live != int64(n.LiveBytes-b.LiveBytes) ||
				count != int64(n.AllocCount-b.AllocCount) {
				t.Errorf("seed %d: rows of %s by %s do not add up", seed, g.Level, g.By)
			}
		}
	}
}

func TestDiffMatchesThreadsWithoutTheirNumber(t *testing.T) {
	for key, want := range map[string]string{"python3 (4711)": "python3", "thread (9)": "thread",
		"(unknown)": "(unknown)", "odd (name) (1)": "odd (name)"} {
		if got := diff.StableKey("thread", key); got != want {
			t.Errorf("stableKey(%q) = %q, want %q", key, got, want)
		}
	}
	if got := diff.StableKey("tag", "model (4711)"); got != "model (4711)" {
		t.Errorf("a tag became %q", got)
	}
}

func TestDiffNotes(t *testing.T) {
	base := &report.Summary{Process: report.Process{Ended: report.EndedClean}, Health: report.Health{Complete: true},
		Versions: map[string]string{"torch": "2.7"}, NullGPU: true}
	changed := &report.Summary{Process: report.Process{Ended: report.EndedKilled, Signal: "SIGFPE"},
		Versions: map[string]string{"torch": "2.8"}, Framework: report.Level{AllocCount: 1}}
	got := strings.Join(diff.New(base, changed).Notes, "\n")
	for _, want := range []string{"new run is not complete", "new run did not exit normally (SIGFPE)",
		"Only one of the runs used a real GPU",
		"torch differs: 2.7 in the base, 2.8", "Only one of the runs has blocks of a framework"} {
		if !strings.Contains(got, want) {
			t.Errorf("no note says %q:\n%s", want, got)
		}
	}
}
