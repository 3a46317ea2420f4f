package cause

import "slices"

const (
	minRises = 4 // number of times that memory must rise and stay
	// tailPart is the last part of the run, as a divisor, in which memory must have stayed allocated: otherwise growth
	// has stopped. Of known iterations, leastIterations in a smaller part may say so.
	tailPart, knownTailPart = 8, 16
	leastIterations         = 8
	// faltered is how many times as much memory must have risen in every stretch as long as the last one, in as many
	// rises, for that to be an end; there must be leastStretches of them.
	faltered, leastStretches = 3, 4
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
// at least two fifths of the run. ended is how many iterations had ended by each point; nil: that is not known.
func beginOfRise(v []uint64, ended []int) (from int, found bool) {
	at, last := rises(v), len(v)-1
	for k := range at {
		from := at[k] - 1
		if last-from < last*2/5 || len(at)-k < minRises {
			return 0, false
		}
		if continues(v, at[k:]) && (v[last]-v[from] >= v[from]/4 || withIterations(v, at[k:], ended)) {
			return from, !stops(v, from, ended)
		}
	}
	return 0, false
}

// withIterations reports whether memory rises at half of the points by which iterations have ended since it began to,
// or more often. What is little beside that which was there before may be a full pool that varies, unless it does.
func withIterations(v []uint64, at []int, ended []int) bool {
	if ended == nil {
		return false
	}
	count, from := 0, at[0]-1
	for i := from + 1; i < len(v); i++ {
		if ended[i] > ended[i-1] {
			count++
		}
	}
	return ended[len(v)-1]-ended[from] >= leastIterations && 2*len(at) >= count
}

// continues reports whether the rises at some points are those of one process that has not ended: they do not flatten
// out, none of them is most of it, and the time after the last one is no longer than that between others.
func continues(v []uint64, at []int) bool {
	from, last := at[0]-1, len(v)-1
	whole := v[last] - v[from]
	gap, latest := 0, latestRise(v, from)
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

// latestRise is the point before which all but a trifle was there. The last point tells nothing: its memory may be in
// flight, such as a replacement that is allocated before its predecessor is freed.
func latestRise(v []uint64, from int) int {
	latest := len(v) - 2
	trifle := (v[latest] - v[from]) / 50
	for v[latest-1] >= v[len(v)-2]-trifle && latest > from+1 {
		latest--
	}
	return latest
}

// stops reports whether memory that rose from a point on came to a stand while iterations went on: it rose by far less
// since the latest rise than in any stretch as long before, of which none was without some rises.
func stops(v []uint64, from int, ended []int) bool {
	if ended == nil {
		return false
	}
	end, latest := len(v)-2, latestRise(v, from)
	for end > latest && ended[end-1] == ended[end] {
		end--
	}
	length := end - latest
	if length <= len(v)/knownTailPart || latest-from < leastStretches*length ||
		ended[end]-ended[latest] < leastIterations {
		return false
	}
	for i := from; i+length <= latest; i++ {
		if v[i+length]-v[i] < faltered*(v[end]-v[latest]) || len(rises(v[i:i+length+1])) < faltered {
			return false
		}
	}
	return true
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

// addSeries adds the points of v, no more than sum has.
func addSeries(sum, v []uint64) {
	for i := range min(len(sum), len(v)) {
		sum[i] += v[i]
	}
}
