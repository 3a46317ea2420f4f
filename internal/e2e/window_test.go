//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// blockSum and windowReport mirror what the test reads of a report of a window (docs/report-json.md).
type blockSum struct{ Count, Bytes uint64 }

type windowReport struct {
	Framework struct {
		Peak   uint64 `json:"peak_bytes"`
		Allocs uint64 `json:"alloc_count"`
		Frees  uint64 `json:"free_count"`
	} `json:"framework"`
	Window struct {
		Levels []struct {
			Level                                string
			Start, Freed, Kept, New, End, Passed blockSum
		}
	} `json:"window"`
}

// TestWindows: the peak of a window is what PyTorch itself measures between the same two moments, to the byte, and so
// is what was live at both ends and how many blocks came and went.
func TestWindows(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		p := program{framework: framework, args: []string{"windows.py", "--memory-stats", "STATS"}}
		t.Run(name(p), func(t *testing.T) {
			t.Parallel()
			r := p.record(t)
			text, err := os.ReadFile(r.stats)
			if err != nil {
				t.Fatal(err)
			}
			var reported []struct {
				From, To         string
				Peak, Start, End uint64
				StartBlocks      uint64 `json:"start_blocks"`
				EndBlocks        uint64 `json:"end_blocks"`
				Allocated, Freed uint64
			}
			if err := json.Unmarshal(text, &reported); err != nil || len(reported) != 5 {
				t.Fatalf("%v: %s", err, text)
			}
			compareTimeline(t, r.trace)
			for _, want := range reported {
				var got windowReport
				if err := json.Unmarshal([]byte(memtrace(t, "report", "--json", "--from", want.From, "--to", want.To,
					r.trace)), &got); err != nil {
					t.Fatal(err)
				}
				l := got.Window.Levels[0]
				if l.Level != "framework" || got.Framework.Peak != want.Peak ||
					l.Start != (blockSum{want.StartBlocks, want.Start}) ||
					l.End != (blockSum{want.EndBlocks, want.End}) ||
					got.Framework.Allocs != want.Allocated || got.Framework.Frees != want.Freed {
					t.Errorf("PyTorch: %+v\nreport: %+v", want, got)
				}
				if l.Start.Bytes != l.Freed.Bytes+l.Kept.Bytes || l.End.Bytes != l.Kept.Bytes+l.New.Bytes ||
					l.New.Count+l.Passed.Count != want.Allocated || l.Freed.Count+l.Passed.Count != want.Freed {
					t.Errorf("%s to %s does not add up: %+v", want.From, want.To, l)
				}
			}
		})
	}
}

// compareTimeline looks at memory over time: what keys held adds up at every highest moment, the highest of all is the
// report's peak, and the allocator's and the driver's lines are at their peaks, too.
func compareTimeline(t *testing.T, trace string) {
	t.Helper()
	var rep struct {
		Framework struct {
			Peak uint64 `json:"peak_bytes"`
		} `json:"framework"`
		Devices []struct {
			Reserved uint64 `json:"reserved_bytes_peak"`
		} `json:"devices"`
		Timeline struct {
			Levels []struct {
				Level string
				Bins  []struct {
					Peak uint64 `json:"peak_bytes"`
					Held []struct{ Key, Bytes uint64 }
				}
			}
			Lines []struct {
				Name string
				Peak []uint64 `json:"peak_bytes"`
			}
			Lanes []struct{ Steps, Marks uint64 }
		} `json:"timeline"`
	}
	if err := json.Unmarshal([]byte(memtrace(t, "report", "--view", "timeline", "--json", trace)), &rep); err != nil {
		t.Fatal(err)
	}
	var highest, steps, marks uint64
	for _, b := range rep.Timeline.Levels[0].Bins {
		var sum uint64
		for _, p := range b.Held {
			sum += p.Bytes
		}
		if sum != b.Peak {
			t.Errorf("categories add up to %d, not %d", sum, b.Peak)
		}
		highest = max(highest, b.Peak)
	}
	for _, lane := range rep.Timeline.Lanes {
		steps, marks = steps+lane.Steps, marks+lane.Marks
	}
	if highest != rep.Framework.Peak || steps != 12 || marks != 5 {
		t.Errorf("over time at most %d, %d steps, %d marks; want %d, 12 and 5", highest, steps, marks,
			rep.Framework.Peak)
	}
	for _, l := range rep.Timeline.Lines {
		if l.Name == "reserved" && slices.Max(l.Peak) != rep.Devices[0].Reserved {
			t.Errorf("reserved at most %d over time, %d in the report", slices.Max(l.Peak), rep.Devices[0].Reserved)
		}
	}
}
