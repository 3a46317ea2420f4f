//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
)

// TestPhases: the passes of each step are between the marks that the program set around them, one after the other, and
// the stretches of the timeline add up to them, to the nanosecond.
func TestPhases(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		p := program{framework: framework, args: []string{"phases.py"}}
		t.Run(name(p), func(t *testing.T) {
			t.Parallel()
			rep := jsonReport(t, p.record(t).trace, "--view", "timeline")
			timeline := value(rep.Timeline)
			marks := map[string]int64{}
			for _, m := range rep.Marks {
				marks[m.Name] = m.FirstTimeNS
			}
			spans, order := timeline.Phases, []string{"forward", "backward", "optimizer", "end"}
			for len(spans) > 0 && spans[0].ToNS < marks["forward 0"] { // the model is made
				spans = spans[1:]
			}
			if len(spans) != 5*3 {
				t.Fatalf("%d phases, want 15: %+v", len(spans), spans)
			}
			for i, s := range spans {
				step, pass := i/3, i%3
				begin, end := marks[fmt.Sprint(order[pass], " ", step)], marks[fmt.Sprint(order[pass+1], " ", step)]
				if len(s.Parts) != 1 || s.Parts[0].Phase != order[pass] || s.Parts[0].NS != s.ToNS-s.FromNS ||
					s.Parts[0].Allocs == 0 || begin == 0 || s.FromNS < begin || s.ToNS > end {
					t.Errorf("step %d: %+v is not the %s pass, from %d to %d", step, s, order[pass], begin, end)
				}
			}
			sums := map[string]report.PhasePart{}
			add := func(sign int64, list []report.PhasePart) {
				for _, part := range list {
					v := sums[part.Phase]
					v.NS, v.Allocs = v.NS+sign*part.NS, v.Allocs+uint64(sign)*part.Allocs
					sums[part.Phase] = v
				}
			}
			for _, s := range timeline.Phases {
				add(1, s.Parts)
			}
			for _, lane := range timeline.Lanes {
				add(-1, lane.Phases)
			}
			for name, v := range sums {
				if v.NS != 0 || v.Allocs != 0 {
					t.Errorf("%s: phases and stretches differ by %d ns and %d allocations", name, v.NS, v.Allocs)
				}
			}
		})
	}
}
