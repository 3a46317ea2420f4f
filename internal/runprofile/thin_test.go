package runprofile

import (
	"testing"

	"memtrace/analyzer/report"
)

// iterationsOf is a training of n iterations, the peak of each 10 times its number, the highest in the middle.
func iterationsOf(n int) *report.Training {
	t := &report.Training{IterationsBy: report.IterationsByStep, Categories: []string{"Parameters"}, Highest: n / 2}
	for i := range n {
		bytes := uint64(10 * (i + 1))
		if i == n/2 {
			bytes = 1_000_000
		}
		t.Iterations = append(t.Iterations, report.Iteration{Number: uint64(i + 1), Ended: true, StartNS: int64(i),
			EndNS: int64(i + 1), AllocCount: 2, Peak: report.IterationMoment{Bytes: bytes, Held: []uint64{bytes}},
			Highest: []uint64{bytes}, End: []uint64{uint64(i)}})
	}
	t.Iterations = append(t.Iterations, report.Iteration{Number: uint64(n + 1), Highest: []uint64{5},
		Peak: report.IterationMoment{Bytes: 5, Held: []uint64{5}}, End: []uint64{5}})
	return t
}

// TestThinIterations: the first, the last and the highest stay, and those that do not are counted.
func TestThinIterations(t *testing.T) {
	for _, n := range []int{1, maxIterations - 1, maxIterations, 70, 1000, 100_000} {
		s := &report.Summary{Training: iterationsOf(n)}
		thinIterations(s)
		v := s.Training
		last := v.Iterations[len(v.Iterations)-1]
		if len(v.Iterations) > maxIterations || len(v.Iterations)+int(v.LeftOut) != n+1 ||
			v.Iterations[0].Number != 1 || last.Ended ||
			v.Iterations[len(v.Iterations)-2].Number != uint64(n) || v.Iterations[v.Highest].Peak.Bytes != 1_000_000 {
			t.Errorf("of %d iterations %d are left and %d not; the highest is %d", n, len(v.Iterations), v.LeftOut,
				v.Iterations[v.Highest].Number)
		}
	}
}
