//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
)

type phasePart struct {
	Phase  string `json:"phase"`
	NS     int64  `json:"ns"`
	Allocs uint64 `json:"alloc_count"`
}

type phasesReport struct {
	Marks []struct {
		Name string `json:"name"`
		Time int64  `json:"first_time_ns"`
	} `json:"marks"`
	Timeline struct {
		Phases []struct {
			From  int64       `json:"from_ns"`
			To    int64       `json:"to_ns"`
			Parts []phasePart `json:"parts"`
		} `json:"phases"`
		Lanes []struct{ Phases []phasePart } `json:"lanes"`
	} `json:"timeline"`
}

// TestPhases: the passes of each step lie between the marks that the program set around them, one after the other, and
// the stretches of the timeline add up to them, to the nanosecond.
func TestPhases(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		p := program{framework: framework, args: []string{"phases.py"}}
		t.Run(name(p), func(t *testing.T) {
			t.Parallel()
			var rep phasesReport
			if err := json.Unmarshal([]byte(memtrace(t, "report", "--view", "timeline", "--json", p.record(t).trace)),
				&rep); err != nil {
				t.Fatal(err)
			}
			marks := map[string]int64{}
			for _, m := range rep.Marks {
				marks[m.Name] = m.Time
			}
			spans, order := rep.Timeline.Phases, []string{"forward", "backward", "optimizer", "end"}
			for len(spans) > 0 && spans[0].To < marks["forward 0"] { // the model is made
				spans = spans[1:]
			}
			if len(spans) != 5*3 {
				t.Fatalf("%d phases, want 15: %+v", len(spans), spans)
			}
			for i, s := range spans {
				step, pass := i/3, i%3
				begin, end := marks[fmt.Sprint(order[pass], " ", step)], marks[fmt.Sprint(order[pass+1], " ", step)]
				if len(s.Parts) != 1 || s.Parts[0].Phase != order[pass] || s.Parts[0].NS != s.To-s.From ||
					s.Parts[0].Allocs == 0 || begin == 0 || s.From < begin || s.To > end {
					t.Errorf("step %d: %+v is not the %s pass, from %d to %d", step, s, order[pass], begin, end)
				}
			}
			sums := map[string]phasePart{}
			add := func(sign int64, list []phasePart) {
				for _, part := range list {
					v := sums[part.Phase]
					sums[part.Phase] = phasePart{part.Phase, v.NS + sign*part.NS, v.Allocs + uint64(sign)*part.Allocs}
				}
			}
			for _, s := range rep.Timeline.Phases {
				add(1, s.Parts)
			}
			for _, lane := range rep.Timeline.Lanes {
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
