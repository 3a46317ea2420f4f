package oom

import (
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

// A block of more than a MiB may be larger than what was requested, by less than one MiB; a smaller one is not.
func TestOfSize(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	sizes := []uint64{512, 4 * kib, 2 * mib, 8 * mib}
	for size, want := range map[uint64]int{512: 0, 1024: -1, 4 * kib: 1, 2 * mib: 2, 2*mib + 512*kib: 2,
		mib + 512*kib: 2, 4 * mib: -1, 7*mib + 512: 3, 9 * mib: 3, 10 * mib: -1} {
		if got := ofSize(sizes, size); got != want {
			t.Errorf("%d bytes: %d, want %d", size, got, want)
		}
	}
}

// What training held at a refusal had all gradients in one row, where the refusal's own account divides them.
func TestSplitGradients(t *testing.T) {
	training := report.Training{Categories: []string{parameters, gradients, ofActivations},
		OutOfMemory: []report.OOMCategories{{TimeNS: 5, Bytes: 17, Held: []uint64{4, 10, 3}},
			{TimeNS: 7, Bytes: 6, Held: []uint64{4, 2, 0}}}}
	SplitGradients(&training, []report.OOMEvent{{TimeNS: 6}, {TimeNS: 5, Categories: []report.OOMCategory{
		{Category: ofActivations, Bytes: 9}, {Category: gradients, Bytes: 4}}},
		{TimeNS: 7, Categories: []report.OOMCategory{{Category: ofActivations, Bytes: 3}}}})
	for i, want := range [][]uint64{{4, 4, 9}, {4, 2, 0}} { // of the second, more than there is
		if got := training.OutOfMemory[i].Held; !slices.Equal(got, want) {
			t.Errorf("refusal %d: %v, want %v", i, got, want)
		}
	}
}
