package cause

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/rules"
)

// What no rule was for was taken for memory that stays, also the inputs and losses that each iteration makes and
// drops, so that more was said to fit than did: of 64 MiB of it, 48 MiB go with the batch. What was there before and
// stays, and what an optimizer makes for a while, does not.
func TestDividedByWhatABatchMakes(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	training := &report.Training{Categories: []string{"Parameters", "Feature maps", rules.Others}}
	held := []uint64{100 * mib, 200 * mib, 64 * mib}
	stayed := []uint64{100 * mib, 0, 16 * mib}
	for phase, want := range map[string]fitMoment{"forward": {116 * mib, 248 * mib}, "backward": {116 * mib, 248 * mib},
		"optimizer": {164 * mib, 200 * mib}} {
		part, unknown := divided(training, &report.IterationMoment{Phase: phase, Held: held}, stayed)
		if part != want || unknown != 64*mib {
			t.Errorf("%s: %+v, %d bytes of it not known, want %+v", phase, part, unknown, want)
		}
	}
}

// A backlog of batches was taken for one batch, and so was a leak: of what grows with the batch, what an iteration only
// keeps from before tells nothing of a batch.
func TestFitNeedsThisIterationsMemory(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	summary := func(kept uint64) *report.Summary {
		held := []uint64{100 * mib, 300*mib + kept}
		training := &report.Training{Categories: []string{"Parameters", "Input data"},
			IterationsBy: report.IterationsByOptimizer, Parameters: make([]report.Parameter, 1)}
		for range 3 {
			training.Iterations = append(training.Iterations, report.Iteration{Ended: true,
				Peak: report.IterationMoment{Phase: "forward", Bytes: report.SumOf(held), Held: held},
				End:  []uint64{100 * mib, 100*mib + kept}, Stayed: []uint64{100 * mib, kept}})
		}
		device := report.Device{TotalBytes: 4096 * mib}
		device.Framework.PeakBytes, device.Framework.AllocCount = report.SumOf(held), 1
		return &report.Summary{Training: training, Devices: []report.Device{device}}
	}
	if f := FitOf(summary(0)); f == nil || f.Scaling != 300*mib {
		t.Errorf("a healthy program: %+v", f)
	}
	if f := FitOf(summary(300 * mib)); f != nil {
		t.Errorf("with a backlog: %+v", f)
	}
	older := summary(0)
	older.Training.Iterations[1].Stayed = nil
	if f := FitOf(older); f != nil {
		t.Errorf("where it is not known what stayed: %+v", f)
	}
}
