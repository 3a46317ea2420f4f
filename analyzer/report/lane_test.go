package report

import (
	"fmt"
	"testing"
)

// TestLanesKeepEverything: however many iterations and epochs there are, a lane goes from the first to the last one
// without a gap, in few items.
func TestLanesKeepEverything(t *testing.T) {
	for _, count := range []int{1, 3, MaxLaneItems, MaxLaneItems + 1, 3*MaxLaneItems + 7} {
		s := &Summary{Training: &Training{IterationsBy: IterationsByOptimizer}}
		for i := range count + 1 {
			s.Training.Iterations = append(s.Training.Iterations, Iteration{Number: uint64(i + 1), Epoch: uint64(i/2 + 1), Ended: i < count, StartNS: int64(i) * 10, EndNS: int64(i+1) * 10})
		}
		lanes := s.Lanes()
		if len(lanes) != 2 || lanes[0].Name != LaneIterations || lanes[1].Name != LaneEpochs {
			t.Fatalf("%d iterations: lanes %+v", count, lanes)
		}
		for _, l := range lanes {
			if len(l.Items) > MaxLaneItems || l.Items[0].FromNS != 0 || l.Items[len(l.Items)-1].ToNS != int64(count)*10 {
				t.Fatalf("%d iterations, %s: %d items from %+v to %+v", count, l.Name, len(l.Items), l.Items[0], l.Items[len(l.Items)-1])
			}
			for i := range l.Items[1:] {
				if l.Items[i].ToNS != l.Items[i+1].FromNS {
					t.Fatalf("%d iterations, %s: %+v, then %+v", count, l.Name, l.Items[i], l.Items[i+1])
				}
			}
		}
	}
	long := &Summary{Training: &Training{IterationsBy: IterationsByStep}}
	for i := range 4 * MaxLaneItems {
		long.Training.Iterations = append(long.Training.Iterations, Iteration{Number: uint64(i + 1), Epoch: uint64(i + 1), Ended: true})
	}
	for i, want := range []string{"5-8", "5-8"} {
		if got := long.Lanes()[i].Items[1].Name; got != want {
			t.Errorf("%s: %s, want %s", long.Lanes()[i].Name, got, want)
		}
	}
}

// TestLanesOfMoments: marks lie in the order of time, those of memtrace itself are no part of it, and a run without
// anything has no lane.
func TestLanesOfMoments(t *testing.T) {
	s := &Summary{Marks: []Mark{{Name: "b", FirstTimeNS: 20}, {Name: "memtrace.attached", FirstTimeNS: 1}, {Name: "a", FirstTimeNS: 10}}}
	s.OOM.Events = []OOMEvent{{TimeNS: 15}}
	s.Training = &Training{IterationsBy: IterationsByNothing, Phases: []PhaseSpan{{1, 5, []PhasePart{{"forward", 4, 2}}}, {6, 9, []PhasePart{{"forward", 1, 2}, {"backward", 2, 2}}}}}
	var got []string
	for _, l := range s.Lanes() {
		for _, i := range l.Items {
			got = append(got, fmt.Sprintf("%s %s %d-%d %t", l.Name, i.Name, i.FromNS, i.ToNS, i.Moment))
		}
	}
	want := "[phases forward 1-5 false phases  6-9 false marks a 10-10 true marks b 20-20 true no memory  15-15 true]"
	if fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", fmt.Sprint(got), want)
	}
	if lanes := (&Summary{}).Lanes(); len(lanes) != 0 {
		t.Errorf("%+v", lanes)
	}
}
