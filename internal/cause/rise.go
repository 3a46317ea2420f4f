package cause

import "slices"

const (
	minRises = 4 // number of times that memory must rise and stay
	// tailPart is the last part of the run, as a divisor, in which memory must have stayed allocated: otherwise growth
	// has stopped.
	tailPart = 8
)

// stayed returns, for each point, the bytes that were never freed afterwards.
func stayed(lows []uint64) []uint64 {
	v := slices.Clone(lows)
	for i := len(v) - 2; i >= 0; i-- {
		v[i] = min(v[i], v[i+1])
	}
	return v
}

// rises lists the points at which more is there than at the one before.
func rises(v []uint64) (list []int) {
	for i := 1; i < len(v); i++ {
		if v[i] > v[i-1] {
			list = append(list, i)
		}
	}
	return list
}

// beginOfRise returns the first point from which on memory that never shrinks rises repeatedly, up to the end and for
// at least two fifths of the run.
func beginOfRise(v []uint64) (from int, found bool) {
	at, last := rises(v), len(v)-1
	for k := range at {
		from := at[k] - 1
		if last-from < last*2/5 || len(at)-k < minRises {
			return 0, false
		}
		if continues(v, at[k:]) {
			return from, true
		}
	}
	return 0, false
}

// continues reports whether the rises at some points are those of one process that has not ended: they do not flatten
// out, none of them is most of it, and the time after the last one is no longer than that between others.
func continues(v []uint64, at []int) bool {
	from, last := at[0]-1, len(v)-1
	whole := v[last] - v[from]
	if whole < v[from]/4 { // a full pool varies
		return false
	}
	// before which all but a trifle was there: a replacement is allocated before its predecessor is freed
	latest := last
	for v[latest-1] >= v[last]-whole/50 {
		latest--
	}
	gap := 0
	for k, i := range at {
		if v[i]-v[i-1] > whole/5*3 {
			return false
		}
		if k > 0 && i <= latest {
			gap = max(gap, i-at[k-1])
		}
	}
	middle := (from + last) / 2
	early, late := v[middle]-v[from], v[last]-v[middle]
	return late >= early/2 && v[last]-v[last-(last-from)/3] >= whole/8 &&
		gap <= (last-from)/2 && last-latest <= max(gap*3/2, last/tailPart)
}

// slope returns the median of the slopes between all pairs of points (Theil-Sen): one outlier in four does not move it
// far. Bytes per unit of x.
func slope(v []uint64, x []int64) float64 {
	var slopes []float64
	for i := range v {
		for j := range i {
			if x[i] > x[j] {
				slopes = append(slopes, (float64(v[i])-float64(v[j]))/float64(x[i]-x[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

func addSeries(sum, v []uint64) {
	for i := range v {
		sum[i] += v[i]
	}
}
