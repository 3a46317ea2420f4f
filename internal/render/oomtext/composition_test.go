package oomtext

import (
	"testing"

	"memtrace/analyzer/report"
)

// What attempts that failed before had made was called "of this iteration", and so were the results of a program that
// makes no steps, of which most were older.
func TestCompositionWords(t *testing.T) {
	const mib = 1 << 20
	for want, c := range map[string]report.OOMComposition{
		"2.00 MiB are parameters and what else stays, 54.0 MiB are of this iteration, 4.00 GiB are of attempts that " +
			"failed before": {FixedBytes: 2 * mib, IterationBytes: 4150 * mib, LeftBytes: 4096 * mib,
			LeftIterationBytes: 4096 * mib},
		"2.00 MiB are parameters and what else stays, 10.0 MiB are of the latest of 4 runs of the same code since the " +
			"last step, 50.0 MiB are of attempts that failed before, 6.00 MiB are older": {FixedBytes: 2 * mib,
			IterationBytes: 20 * mib, OlderBytes: 46 * mib, Passes: 4, Stepped: true, LeftBytes: 50 * mib,
			LeftIterationBytes: 10 * mib},
		"8.00 MiB are parameters and what else stays, 2.00 GiB are of this iteration or older: no step was seen": {
			FixedBytes: 8 * mib, IterationBytes: 2048 * mib, IterationFeatureBytes: 32 * mib},
		"8.00 MiB are parameters and what else stays, 2.00 GiB are of this iteration": {
			FixedBytes: 8 * mib, IterationBytes: 2048 * mib, IterationFeatureBytes: 2000 * mib},
	} {
		if got := compositionWords(&c); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
