package report

import "slices"

// Median is the middle one of some values, of an even number the mean of the two in the middle, rounded down; 0 without
// any. The values stay as they are.
func Median(values []uint64) uint64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return low + (high-low)/2
}
