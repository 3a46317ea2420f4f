//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

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
				got := jsonReport(t, r.trace, "--from", want.From, "--to", want.To)
				l := got.Window.Levels[0]
				if l.Level != "framework" || got.Framework.PeakBytes != want.Peak ||
					l.Start != (report.BlockSum{Count: want.StartBlocks, Bytes: want.Start}) ||
					l.End != (report.BlockSum{Count: want.EndBlocks, Bytes: want.End}) ||
					got.Framework.AllocCount != want.Allocated || got.Framework.FreeCount != want.Freed {
					t.Errorf("PyTorch: %+v\nreport: %+v %+v", want, got.Framework, l)
				}
				if l.Start.Bytes != l.Freed.Bytes+l.Kept.Bytes || l.End.Bytes != l.Kept.Bytes+l.New.Bytes ||
					l.New.Count+l.Passed.Count != want.Allocated || l.Freed.Count+l.Passed.Count != want.Freed {
					t.Errorf("%s to %s does not add up: %+v", want.From, want.To, l)
				}
			}
		})
	}
}

// compareTimeline checks memory over time: what keys held adds up at every highest moment, the highest of all is the
// report's peak, and the allocator's and the driver's lines are at their peaks, too.
func compareTimeline(t *testing.T, trace string) {
	t.Helper()
	rep := jsonReport(t, trace, "--view", "timeline")
	timeline := value(rep.Timeline)
	var highest, steps, marks uint64
	for _, b := range timeline.Levels[0].Bins {
		var sum uint64
		for _, p := range b.Held {
			sum += p.Bytes
		}
		if sum != b.PeakBytes {
			t.Errorf("categories add up to %d, not %d", sum, b.PeakBytes)
		}
		highest = max(highest, b.PeakBytes)
	}
	for _, lane := range timeline.Lanes {
		steps, marks = steps+lane.Steps, marks+lane.Marks
	}
	if highest != rep.Framework.PeakBytes || steps != 12 || marks != 5 {
		t.Errorf("over time at most %d, %d steps, %d marks; want %d, 12 and 5", highest, steps, marks,
			rep.Framework.PeakBytes)
	}
	for _, l := range timeline.Lines {
		if l.Name == "reserved" && slices.Max(l.PeakBytes) != rep.Devices[0].ReservedBytesPeak {
			t.Errorf("reserved at most %d over time, %d in the report", slices.Max(l.PeakBytes),
				rep.Devices[0].ReservedBytesPeak)
		}
	}
}
