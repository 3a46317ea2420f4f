package oom

import "testing"

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
