package cause

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// Growth of 1.5 MiB an iteration after a warm-up was said to be 2.07, and 4 MiB in each of 80 iterations 4.05: what
// came before the iterations were alike counted, and the last point, which has what came after its interval began.
//
// What an iteration leaves is told exactly, of the framework's memory and of other kinds, whatever the first ones made
// and whether something stays in each or once in three.
func TestGrowthPerIteration(t *testing.T) {
	const mib, nanoseconds = 1 << 20, 100
	for _, c := range []struct {
		name             string
		iterations, warm int
		first, each      uint64 // bytes that the first iterations make, and that each leaves
		every            int
		account          heap.Account
		perPoint         int // iterations in an interval
	}{
		{"steady", 80, 0, 0, 4 * mib, 1, heap.AccountFramework, 1},
		{"warm-up", 40, 6, 10 * mib, 3 * mib / 2, 1, heap.AccountFramework, 1},
		{"once in three", 90, 2, 8 * mib, 6 * mib, 3, heap.AccountFramework, 1},
		{"many", 4000, 10, 64 * mib, 13 * mib, 1, heap.AccountFramework, 40},
		{"pinned", 80, 0, 0, 4 * mib, 1, heap.AccountHost, 1},
		{"pinned, several to a point", 640, 20, 32 * mib, 13 * mib, 1, heap.AccountHost, 8},
	} {
		training := &report.Training{Level: report.LevelFramework, IterationsBy: report.IterationsByOptimizer}
		j := &GrowthJudge{Summary: &report.Summary{Training: training}}
		g := &growth{account: c.account}
		held := uint64(0)
		for i := range c.iterations {
			if i%c.perPoint == 0 {
				g.grown, j.times = append(g.grown, held), append(j.times, int64(i+c.perPoint)*nanoseconds)
			}
			if i < c.warm {
				held += c.first
			}
			if i%c.every == 0 {
				held += c.each
			}
			training.Iterations = append(training.Iterations, report.Iteration{Ended: true, End: []uint64{held},
				EndNS: int64(i+1) * nanoseconds})
		}
		g.grown[len(g.grown)-1] = held // at the last allocation
		if got, want := j.perIteration(g), c.each/uint64(c.every); got != want {
			t.Errorf("%s: %d bytes an iteration, want %d", c.name, got, want)
		}
	}
}
