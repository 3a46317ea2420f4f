package cause

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// TestMadeLate: gradients and optimizer state that are allocated layer by layer are no leak, unless there are more of
// them than parameters can need, or other memory grows.
func TestMadeLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state, others []uint64 // at the ends of iterations
		want          bool
	}{
		"layer by layer":          {[]uint64{0, 30, 60, 90, 120, 150}, []uint64{5, 5, 5, 5, 5, 5}, true},
		"of optimizers kept":      {[]uint64{0, 200, 400, 600, 800, 999}, []uint64{5, 5, 5, 5, 5, 5}, false},
		"something else as well":  {[]uint64{0, 30, 60, 90, 120, 150}, []uint64{0, 100, 200, 300, 400, 500}, false},
		"something else, no more": {[]uint64{30, 30, 30, 30, 30, 30}, []uint64{0, 100, 200, 300, 400, 500}, false},
	} {
		v := &report.Training{Level: report.LevelFramework,
			Categories: []string{"Parameters", "Optimizer state", "Others"}}
		for i := range c.state {
			v.Iterations = append(v.Iterations, report.Iteration{Ended: true, EndNS: int64(i + 1),
				End: []uint64{100, c.state[i], c.others[i]}})
		}
		last := len(c.state) - 1
		j := &GrowthJudge{Summary: &report.Summary{Training: v}, times: []int64{1, 6}}
		g := &growth{account: heap.AccountFramework, bytes: c.state[last] - c.state[0] + c.others[last] - c.others[0]}
		if got := j.allocatedLate(g); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
