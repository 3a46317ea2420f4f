package cause

import (
	"math"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
)

const (
	minPoints = 16 // of a series
	// minRounds is how many rounds a program must have repeated while memory grew: the first round allocates what is
	// needed from then on, and runs through many layers that look the same.
	minRounds = 3
	// floorPart is the part of the peak, as a divisor, below which growth is ignored, as it is below floorBytes.
	floorPart  = 200
	floorBytes = 1 << 20
	// keptPart is the part of the growth, as a divisor, that must remain after subtracting what others hold less:
	// otherwise memory only moves from one place to another.
	keptPart = 4
	// minChurn is the ratio of freed to kept memory that is required if a program's rounds are unknown: otherwise it is
	// still building up what it needs.
	minChurn = 3
	// nativeRises is how often memory must rise and stay in a program without Python, whose rounds are unknown.
	nativeRises = 32
	ending      = 500e6 // nanoseconds that such a program needs to end
	// trainedIterations are needed for a part of the run to be judged alone.
	trainedIterations = 16
)

// JudgesGrowth reports whether an account's memory is judged: memory of other processes, or address space without
// memory, is not.
func JudgesGrowth(account heap.Account) bool {
	switch account {
	case heap.AccountDriver, heap.AccountFramework, heap.AccountManaged, heap.AccountHost, heap.AccountRegistered:
		return true
	}
	return false
}

// GrowthJudge has the inputs of a judgement on growth. The summary must have its bounds, devices, levels and training.
type GrowthJudge struct {
	Held     *profile.HeldSeries // nil where none was kept
	Summary  *report.Summary
	Resolver *profile.Resolver
	Imported bool // from another tool's file, without the number of rounds
	// Reserves reports whether a call stack allocates the driver's memory for an allocator whose blocks are judged
	// instead
	Reserves func(stack uint64) bool

	times    []int64 // of the points
	finished []int   // iterations by then; nil: they are not known
}

// Judge judges the main level and the other kinds of memory that the program used.
func (j *GrowthJudge) Judge(main heap.Account) (*report.Trend, []report.Trend) {
	others := []report.Trend{}
	for account := range heap.AccountCount {
		if account != main && JudgesGrowth(account) && j.peakOf(account) > 0 {
			others = append(others, *j.of(account))
		}
	}
	return j.of(main), others
}

// peakOf is the most that an account held.
func (j *GrowthJudge) peakOf(account heap.Account) uint64 {
	switch account {
	case heap.AccountDriver:
		return j.Summary.Driver.PeakBytes
	case heap.AccountFramework:
		return j.Summary.Framework.PeakBytes
	}
	return j.Summary.Other[account.String()].PeakBytes
}

// of judges one account: the whole run, and where nothing grows up to its end, the part up to the last iteration. What
// comes after it, such as a test of the trained model, allocates as well, and does not tell that growth had stopped.
func (j *GrowthJudge) of(account heap.Account) *report.Trend {
	if j.Held == nil || j.Summary.Bounds != nil || j.Held.Points() < minPoints {
		return unknownTrend(account)
	}
	j.times = append(append([]int64{}, j.Held.Ends[:j.Held.Points()]...), j.Held.LastTimeNS)
	j.finished = j.endedBy(j.times)
	whole := j.judge(account)
	if whole.Rises() {
		return whole
	}
	if end := j.afterIterations(); end > 0 {
		j.times, j.finished = j.times[:end+1], j.finished[:end+1]
		if part := j.judge(account); part.Rises() {
			return part
		}
	}
	return whole
}

// afterIterations is the point after the last iteration, and 0 where there are not enough of them, they are guessed, or
// the run ends with them.
func (j *GrowthJudge) afterIterations() int {
	last := len(j.times) - 1
	if j.iterations(j.times[0], j.times[last]) < trainedIterations {
		return 0
	}
	end := slices.Index(j.finished, j.finished[last]) + 1
	if end+1 < minPoints || end >= last {
		return 0
	}
	return end
}

func unknownTrend(account heap.Account) *report.Trend {
	return &report.Trend{Level: account.String(), Kind: report.GrowthUnknown, Owners: []report.TrendOwner{}}
}

// judge judges an account up to the last of the points.
func (j *GrowthJudge) judge(account heap.Account) *report.Trend {
	t := unknownTrend(account)
	g, floor := j.growthOf(account), max(floorBytes, j.peakOf(account)/floorPart)
	moves := g != nil && g.moves(j.round(g))
	explained := g != nil && (j.allocatedLate(g) || j.inputsGetLonger(g))
	steady := g != nil && !moves && !explained && j.repeats(g) && !j.ended(g)
	switch {
	case steady && g.bytes >= floor:
		t.Kind = report.GrowthSteady
	case steady:
		t.Kind, t.FloorBytes = report.GrowthNone, floor
	case g == nil || g.bytes < floor || moves || explained:
		t.Kind = report.GrowthNone
	}
	if steady {
		j.describe(t, g)
	}
	return t
}

// stacks are the call stacks of an account that count.
func (j *GrowthJudge) stacks(account heap.Account) []profile.HeldStack {
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

// describe fills in the known facts of a growth.
func (j *GrowthJudge) describe(t *report.Trend, g *growth) {
	last := len(j.times) - 1
	t.FromTimeNS, t.ToTimeNS, t.Bytes = j.times[g.from], j.times[last], g.bytes
	t.FromBytes = g.kept[g.from]
	t.ToBytes = t.FromBytes + t.Bytes
	j.owners(t, g)
	t.BytesPerIteration = j.perIteration(g)
	if !j.Summary.NullGPU {
		j.describeRate(t, g)
	}
}

// describeRate adds what goes by the clock.
func (j *GrowthJudge) describeRate(t *report.Trend, g *growth) {
	t.BytesPerSecond = slope(g.grown[g.from:], j.times[g.from:]) * 1e9
	if seconds := float64(t.ToTimeNS-t.FromTimeNS) / 1e9; seconds > 0 {
		t.BytesPerSecond += float64(g.rest) / seconds
	}
	if account := t.Level; account == report.LevelDriver || account == report.LevelFramework {
		t.FullInSeconds = fullIn(j.Summary, t.BytesPerSecond)
	}
}

// perIteration is how much more each iteration leaves, 0 if there are too few: the median slope, so that neither the
// first iterations, which make what is needed from then on, nor memory that stays once in many count for more.
func (j *GrowthJudge) perIteration(g *growth) uint64 {
	last := len(j.times) - 1
	count := j.iterations(j.times[g.from], j.times[last])
	if count < minRounds {
		return 0
	}
	if t := j.Summary.Training; t.Level == g.account.String() {
		if held, number := endsBetween(t, j.times[g.from], j.times[last]); len(held) > minRounds {
			return uint64(max(math.Round(slope(held, number)), 0))
		}
	}
	// a point has the least of its interval, which was there at the end of the one before; not so the last one
	ended := make([]int64, 0, last-g.from)
	for i := g.from; i < last; i++ {
		ended = append(ended, int64(j.iterations(math.MinInt64, j.times[max(i-1, 0)])))
	}
	return uint64(math.Round(max(slope(g.grown[g.from:last], ended), 0) + float64(g.rest)/float64(count)))
}

// mostEnds bounds how many iterations a slope is of.
const mostEnds = 256

// endsBetween returns what was held when iterations ended in an interval, evenly chosen, and their numbers among these.
func endsBetween(t *report.Training, from, to int64) (held []uint64, number []int64) {
	for i := range t.Iterations {
		if it := &t.Iterations[i]; it.Ended && it.EndNS >= from && it.EndNS <= to {
			held, number = append(held, report.SumOf(it.End)), append(number, int64(len(number)))
		}
	}
	if n := len(held); n > mostEnds {
		for i := range mostEnds {
			at := i * (n - 1) / (mostEnds - 1)
			held[i], number[i] = held[at], int64(at)
		}
		held, number = held[:mostEnds], number[:mostEnds]
	}
	return held, number
}

// iterations counts the iterations that ended in an interval; none if they are guessed.
func (j *GrowthJudge) iterations(from, to int64) (count int) {
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

// endedBy counts the iterations, be they inferred, that ended by each of some times; nil if none are known.
func (j *GrowthJudge) endedBy(times []int64) []int {
	t := j.Summary.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing {
		return nil
	}
	ended, n := make([]int, len(times)), 0
	for at, time := range times {
		for n < len(t.Iterations) && t.Iterations[n].Ended && t.Iterations[n].EndNS <= time {
			n++
		}
		ended[at] = n
	}
	return ended
}

// fullIn returns the seconds until the only device in use is full, 0 if that is unknown, or has happened.
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
