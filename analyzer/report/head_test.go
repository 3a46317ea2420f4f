package report

import (
	"slices"
	"testing"
)

// manyIterations is a training of n iterations, the peak of each 10 times its number, the highest in the middle.
func manyIterations(n int) *Training {
	t := &Training{IterationsBy: IterationsByStep, Categories: []string{"Parameters"}, Highest: n / 2}
	for i := range n {
		bytes := uint64(10 * (i + 1))
		if i == n/2 {
			bytes = 1_000_000
		}
		t.Iterations = append(t.Iterations, Iteration{Number: uint64(i + 1), Ended: true, StartNS: int64(i),
			EndNS: int64(i + 1), AllocCount: 2, Peak: IterationMoment{Bytes: bytes, Held: []uint64{bytes}},
			Highest: []uint64{bytes}, End: []uint64{uint64(i)}})
	}
	t.Iterations = append(t.Iterations, Iteration{Number: uint64(n + 1), Highest: []uint64{5},
		Peak: IterationMoment{Bytes: 5, Held: []uint64{5}}, End: []uint64{5}})
	return t
}

// TestSteps: every iteration that ended is in one row, no highest moment is lost, and what it was for is known.
func TestSteps(t *testing.T) {
	for _, n := range []int{1, 5, MaxSteps, MaxSteps + 1, 1000, 12345} {
		s := stepsOf(manyIterations(n), []Purpose{{Name: "Parameters"}, {Name: "Gradients"}})
		rows, next, highest, requests := len(s.Number), uint64(1), uint64(0), uint64(0)
		for i := range rows {
			if s.Number[i] != next {
				t.Fatalf("%d iterations: row %d begins with %d, want %d", n, i, s.Number[i], next)
			}
			next += s.Count[i]
			highest, requests = max(highest, s.Peak[i]), requests+s.Requests[i]
		}
		if rows > MaxSteps || next != uint64(n+1) || highest != 1_000_000 || requests != uint64(2*n) ||
			s.EndNS[rows-1] != int64(n) || s.End[rows-1] != uint64(n-1) {
			t.Errorf("%d iterations: %d rows up to %d, highest %d, %d requests", n, rows, next, highest, requests)
		}
		if !slices.Equal(s.Held[0], s.Peak) || !slices.Equal(s.Held[1], make([]uint64, rows)) {
			t.Errorf("%d iterations: parameters %d, gradients %d; want %d and none", n, s.Held[0], s.Held[1], s.Peak)
		}
	}
}
