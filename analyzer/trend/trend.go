// Package trend judges whether a level's memory grows without end, from what each of its call stacks held over time. It
// may use the series of package profile and the values of package report, and never follows events itself.
package trend

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

const (
	minPoints     = 16 // of a series
	minValues     = 6  // distinct ones in a rise
	minIterations = 3  // of a training program
	// minReturns is how often one call stack must come back for more: a pass through many layers comes to each of them
	// once.
	minReturns = 4
	// keptPart is the part of the growth, one in so many, that must remain when what others hold less is taken off:
	// else memory only moves from one place to another.
	keptPart = 4
	// minChurn is how many times as much as stays must be freed meanwhile: else the program is still building up what
	// it needs.
	minChurn = 3
)

// Of judges a level's series, nil where none was kept. The summary must have its bounds, devices and training.
func Of(h *profile.HeldSeries, level string, s *report.Summary, r *profile.Resolver) *report.Trend {
	t := &report.Trend{Level: level, Kind: report.GrowthUnknown, Owners: []report.TrendOwner{}}
	if h == nil || s.Bounds != nil {
		return t
	}
	ids, series := h.Series()
	n := min(h.LastAlloc, len(h.Ends))
	if n < minPoints || tooFewIterations(s.Training, h.Ends[n/2], h.Ends[n-1]) {
		return t
	}
	t.Kind = report.GrowthNone
	half := n / 2
	sum, grown := make([]uint64, n), make([]uint64, n)
	sites, users := make(map[string][]uint64), make(map[string]bool)
	for i, v := range series {
		addSeries(sum, v)
		if increases(v[half:]) >= minReturns {
			key, user := r.PlaceOf(ids[i])
			if sites[key] == nil {
				sites[key], users[key] = make([]uint64, n), user
			}
			addSeries(sites[key], v)
		}
	}
	for key, v := range sites {
		if rises(v[half:]) {
			addSeries(grown, v)
			t.Owners = append(t.Owners, report.TrendOwner{Site: key, User: users[key]})
		}
	}
	var freed uint64
	for _, bytes := range h.Freed[half:n] {
		freed += bytes
	}
	growth := grown[n-1] - grown[half]
	if len(t.Owners) == 0 || sum[n-1] < sum[half]+growth/keptPart || freed < minChurn*growth {
		t.Owners = []report.TrendOwner{}
		return t
	}
	t.Kind, t.ToTimeNS = report.GrowthSteady, h.Ends[n-1]
	from := beginOfRise(grown)
	t.FromTimeNS, t.Bytes = h.Ends[from], grown[n-1]-grown[from]
	t.BytesPerSecond = slope(grown[half:], h.Ends[half:n]) * 1e9
	for i, o := range t.Owners {
		v := sites[o.Site]
		t.Owners[i].Bytes = v[n-1] - min(v[from], v[n-1])
	}
	slices.SortFunc(t.Owners, func(x, y report.TrendOwner) int {
		return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), strings.Compare(x.Site, y.Site))
	})
	t.FullInSeconds = fullIn(s, t.BytesPerSecond)
	return t
}

// tooFewIterations reports whether a training program had no time to show in a stretch of its run what its iterations
// leave behind.
func tooFewIterations(t *report.Training, from, to int64) bool {
	if t == nil || t.IterationsBy == report.IterationsByNothing {
		return false
	}
	n := 0
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.EndNS >= from && it.EndNS <= to {
			n++
		}
	}
	return n < minIterations
}

func addSeries(sum, v []uint64) {
	for i := range v {
		sum[i] += v[i]
	}
}

// increases counts the values that are higher than the one before.
func increases(v []uint64) int {
	n := 0
	for i := 1; i < len(v); i++ {
		if v[i] > v[i-1] {
			n++
		}
	}
	return n
}

// rises reports whether values go up all the time: hardly any is below an earlier one, and the second half of the way
// does not flatten out.
func rises(v []uint64) bool {
	last := len(v) - 1
	if v[last] <= v[0] || v[last] <= v[last/2] {
		return false
	}
	up, down, distinct := 0, 0, 1
	for i := range v {
		if i > 0 && v[i] != v[i-1] {
			distinct++
		}
		for j := range i {
			switch {
			case v[i] > v[j]:
				up++
			case v[i] < v[j]:
				down++
			}
		}
	}
	pairs := len(v) * last / 2
	early, late := float64(v[last/2])-float64(v[0]), float64(v[last])-float64(v[last/2])
	return distinct >= minValues && up >= pairs*7/10 && down <= pairs/20 && late >= 0.3*early
}

// beginOfRise returns the first point from which on values rise as they do in their second half.
func beginOfRise(v []uint64) int {
	half, last := len(v)/2, len(v)-1
	rate := float64(v[last]-v[half]) / float64(last-half)
	for from := range half {
		if v[from+1] > v[from] && v[from] < v[half] && rises(v[from:]) &&
			float64(v[half]-v[from])/float64(half-from) >= 0.3*rate {
			return from
		}
	}
	return half
}

// slope returns the median of the slopes between all pairs of points (Theil-Sen): one outlier in four does not move it
// far. Bytes per nanosecond.
func slope(v []uint64, times []int64) float64 {
	var slopes []float64
	for i := range v {
		for j := range i {
			if times[i] > times[j] {
				slopes = append(slopes, (float64(v[i])-float64(v[j]))/float64(times[i]-times[j]))
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	slices.Sort(slopes)
	return slopes[len(slopes)/2]
}

// fullIn returns the seconds until the only device that is used is full, 0 if that cannot be said.
func fullIn(s *report.Summary, rate float64) float64 {
	var used *report.Device
	for i := range s.Devices {
		if d := &s.Devices[i]; !d.Driver.Empty() {
			if used != nil {
				return 0
			}
			used = d
		}
	}
	if used == nil || used.TotalBytes <= used.Driver.PeakBytes || rate <= 0 {
		return 0
	}
	return float64(used.TotalBytes-used.Driver.PeakBytes) / rate
}
