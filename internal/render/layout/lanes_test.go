package layout

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
)

// TestLanesKeepEverything: for any number of iterations and epochs, a lane goes from the first to the last one without
// a gap, in few items.
func TestLanesKeepEverything(t *testing.T) {
	for _, count := range []int{1, 3, MaxLaneItems, MaxLaneItems + 1, 3*MaxLaneItems + 7} {
		s := &report.Summary{Training: &report.Training{IterationsBy: report.IterationsByOptimizer}}
		for i := range count + 1 {
			s.Training.Iterations = append(s.Training.Iterations, report.Iteration{Number: uint64(i + 1),
				Epoch: uint64(i/2 + 1), Ended: i < count, StartNS: int64(i) * 10, EndNS: int64(i+1) * 10})
		}
		all := Lanes(s)
		if len(all) != 2 || all[0].Name != IterationLane || all[1].Name != Epochs {
			t.Fatalf("%d iterations: lanes %+v", count, all)
		}
		for _, l := range all {
			if len(l.Items) > MaxLaneItems || l.Items[0].FromNS != 0 ||
				l.Items[len(l.Items)-1].ToNS != int64(count)*10 {
				t.Fatalf("%d iterations, %s: %d items from %+v to %+v", count, l.Name, len(l.Items), l.Items[0],
					l.Items[len(l.Items)-1])
			}
			for i := range l.Items[1:] {
				if l.Items[i].ToNS != l.Items[i+1].FromNS {
					t.Fatalf("%d iterations, %s: %+v, then %+v", count, l.Name, l.Items[i], l.Items[i+1])
				}
			}
		}
	}
	long := &report.Summary{Training: &report.Training{IterationsBy: report.IterationsByStep}}
	for i := range 4 * MaxLaneItems {
		long.Training.Iterations = append(long.Training.Iterations, report.Iteration{Number: uint64(i + 1),
			Epoch: uint64(i + 1), Ended: true})
	}
	for i, want := range []string{"5-8", "5-8"} {
		if got := Lanes(long)[i].Items[1].Name; got != want {
			t.Errorf("%s: %s, want %s", Lanes(long)[i].Name, got, want)
		}
	}
}

// TestLanesOfMoments: marks are in the order of time, those of memtrace itself are left out, and a run without any has
// no lane.
func TestLanesOfMoments(t *testing.T) {
	s := &report.Summary{Marks: []report.Mark{{Name: "b", FirstTimeNS: 20}, {Name: "memtrace.attached", FirstTimeNS: 1},
		{Name: "a", FirstTimeNS: 10}}}
	s.OOM.Events = []report.OOMEvent{{TimeNS: 15}}
	s.Training = &report.Training{IterationsBy: report.IterationsByNothing,
		Phases: []report.PhaseSpan{
			{FromNS: 1, ToNS: 5, Parts: []report.PhasePart{{Phase: "forward", NS: 4, Allocs: 2}}},
			{FromNS: 6, ToNS: 9, Parts: []report.PhasePart{{Phase: "forward", NS: 1, Allocs: 2},
				{Phase: "backward", NS: 2, Allocs: 2}}}}}
	var got []string
	for _, l := range Lanes(s) {
		for _, i := range l.Items {
			got = append(got, fmt.Sprintf("%s %s %d-%d %t", l.Name, i.Name, i.FromNS, i.ToNS, i.Moment))
		}
	}
	want := "[phases forward 1-5 false phases  6-9 false marks a 10-10 true marks b 20-20 true no memory  15-15 true]"
	if fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", fmt.Sprint(got), want)
	}
	if all := Lanes(&report.Summary{}); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}
