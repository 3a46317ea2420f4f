// Package trend judges whether memory grows without end, from what each of its call stacks held over time. It may use
// the series of package profile, call stacks, and the values of package report, and never follows events itself.
package trend

import (
	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

const (
	minPoints = 16 // of a series
	// minRounds is how often a program must have come back to what it does while memory grew: a first pass makes what
	// is needed from then on, and goes through many layers that look alike.
	minRounds = 3
	// floorPart is the part of the peak, one in so many, below which growth is no matter, nor is it below floorBytes.
	floorPart  = 200
	floorBytes = 1 << 20
	// keptPart is the part of the growth, one in so many, that must remain when what others hold less is taken off:
	// else memory only moves from one place to another.
	keptPart = 4
	// minChurn is how many times as much as stays must be freed meanwhile where a program's rounds cannot be seen: else
	// it is still building up what it needs.
	minChurn = 3
	// nativeRises is how often memory must come to stay in a program without Python, of whose rounds nothing is known.
	nativeRises = 32
	ending      = 500e6 // nanoseconds that such a program takes to end
)

// Judges reports whether an account's memory is judged: what is somebody else's, or no memory, is not.
func Judges(account heap.Account) bool {
	switch account {
	case heap.AccountDriver, heap.AccountFramework, heap.AccountManaged, heap.AccountHost, heap.AccountRegistered:
		return true
	}
	return false
}

// A Judge has all that a judgement on growth goes by. The summary must have its bounds, devices, levels and training.
type Judge struct {
	Held     *profile.HeldSeries // nil where none was kept
	Summary  *report.Summary
	Resolver *profile.Resolver
	Imported bool // from another tool's file, which does not tell how often the program came back
	// Reserves reports whether a call stack takes the driver's memory for an allocator whose blocks are judged instead
	Reserves func(stack uint64) bool

	times []int64 // of the points
}

// Judge judges the main level and, beside it, the other kinds of memory that the program used.
func (j *Judge) Judge(main heap.Account) (*report.Trend, []report.Trend) {
	others := []report.Trend{}
	for account := range heap.AccountCount {
		if account != main && Judges(account) && j.peakOf(account) > 0 {
			others = append(others, *j.of(account))
		}
	}
	return j.of(main), others
}

// peakOf is the most that an account held.
func (j *Judge) peakOf(account heap.Account) uint64 {
	switch account {
	case heap.AccountDriver:
		return j.Summary.Driver.PeakBytes
	case heap.AccountFramework:
		return j.Summary.Framework.PeakBytes
	}
	return j.Summary.Other[account.String()].PeakBytes
}

// of judges one account.
func (j *Judge) of(account heap.Account) *report.Trend {
	t := &report.Trend{Level: account.String(), Kind: report.GrowthUnknown, Owners: []report.TrendOwner{}}
	if j.Held == nil || j.Summary.Bounds != nil || j.Held.Points() < minPoints {
		return t
	}
	j.times = append(append([]int64{}, j.Held.Ends[:j.Held.Points()]...), j.Held.LastTimeNS)
	g := j.growthOf(account)
	switch {
	case g == nil || g.bytes < max(floorBytes, j.peakOf(account)/floorPart) || g.moves():
		t.Kind = report.GrowthNone
	case j.goesRound(g) && !j.ended(g) && !j.madeLate(g):
		t.Kind = report.GrowthSteady
		j.tell(t, g)
	}
	return t
}

// stacks are the call stacks of an account that count.
func (j *Judge) stacks(account heap.Account) []profile.HeldStack {
	list := j.Held.Of(account)
	if account != heap.AccountDriver || j.Reserves == nil {
		return list
	}
	kept := list[:0]
	for _, v := range list {
		if !j.Reserves(v.ID) {
			kept = append(kept, v)
		}
	}
	return kept
}

// tell fills in what is known of a growth that was found.
func (j *Judge) tell(t *report.Trend, g *growth) {
	last := len(j.times) - 1
	t.FromTimeNS, t.ToTimeNS, t.Bytes = j.times[g.from], j.times[last], g.bytes
	t.FromBytes = g.kept[g.from]
	t.ToBytes = t.FromBytes + t.Bytes
	t.BytesPerSecond = slope(g.grown[g.from:], j.times[g.from:]) * 1e9
	if seconds := float64(t.ToTimeNS-t.FromTimeNS) / 1e9; seconds > 0 {
		t.BytesPerSecond += float64(g.rest) / seconds
	}
	j.owners(t, g)
	t.BytesPerIteration = j.perIteration(g)
	if account := t.Level; account == report.LevelDriver || account == report.LevelFramework {
		t.FullInSeconds = fullIn(j.Summary, t.BytesPerSecond)
	}
}

// perIteration is the growth from the first rise to the last one, shared among the iterations in between; 0 if there
// are too few. Memory may stay once in many iterations.
func (j *Judge) perIteration(g *growth) uint64 {
	at, last := rises(g.grown[g.from:]), len(j.times)-1
	first, latest := g.from+at[0], g.from+at[len(at)-1]
	count := j.iterations(j.times[first]+1, j.times[latest])
	if count < minRounds {
		return 0
	}
	rest := g.rest * uint64(latest-first) / uint64(last-g.from)
	return (g.grown[latest] - g.grown[first] + rest) / uint64(count)
}

// iterations counts the iterations that ended in a stretch of time; none where they are guessed.
func (j *Judge) iterations(from, to int64) (count int) {
	t := j.Summary.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing || t.IterationsBy == report.IterationsByPeriod {
		return 0
	}
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.EndNS >= from && it.EndNS <= to {
			count++
		}
	}
	return count
}

// fullIn returns the seconds until the only device that is used is full, 0 if that cannot be said, or has come.
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
	if used == nil || used.TotalBytes <= used.Driver.PeakBytes || rate <= 0 || s.OOM.Count > 0 {
		return 0
	}
	return float64(used.TotalBytes-used.Driver.PeakBytes) / rate
}
