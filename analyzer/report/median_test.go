package report

import (
	"math"
	"slices"
	"testing"
)

// TestMedian: of an even number of values it is the mean of the two in the middle, whatever their order and size.
func TestMedian(t *testing.T) {
	for _, test := range []struct {
		values []uint64
		want   uint64
	}{
		{nil, 0}, {[]uint64{7}, 7}, {[]uint64{30, 10}, 20}, {[]uint64{3, 1, 2}, 2}, {[]uint64{4, 1, 100, 2}, 3},
		{[]uint64{1, 2}, 1}, {[]uint64{math.MaxUint64, math.MaxUint64 - 2}, math.MaxUint64 - 1},
		{[]uint64{5, 5, 5, 5}, 5},
	} {
		before := slices.Clone(test.values)
		if got := Median(test.values); got != test.want || !slices.Equal(before, test.values) {
			t.Errorf("of %v: %d, want %d", before, got, test.want)
		}
	}
}
