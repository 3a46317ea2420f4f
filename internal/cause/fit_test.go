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
	before := &report.Iteration{End: []uint64{100 * mib, 0, 20 * mib}}
	in := &report.Iteration{End: []uint64{100 * mib, 0, 16 * mib}}
	for phase, want := range map[string]fitMoment{"forward": {116 * mib, 248 * mib}, "backward": {116 * mib, 248 * mib},
		"optimizer": {164 * mib, 200 * mib}} {
		part, unknown := divided(training, &report.IterationMoment{Phase: phase, Held: held}, before, in)
		if part != want || unknown != 64*mib {
			t.Errorf("%s: %+v, %d bytes of it not known, want %+v", phase, part, unknown, want)
		}
	}
}
