package report

import (
	"cmp"
	"slices"
)

// Timeline is what was held over time, in intervals of equal width. Every interval has its highest moment, with the
// bytes by key; joined intervals keep the higher one's, so that no maximum is lost.
type Timeline struct {
	By      string          `json:"by"`      // the grouping of Keys
	FromNS  int64           `json:"from_ns"` // when the first interval begins
	WidthNS int64           `json:"width_ns"`
	EndNS   int64           `json:"end_ns"` // when the last one is cut off
	Keys    []TimelineKey   `json:"keys"`
	Levels  []TimelineLevel `json:"levels"` // that were used, the framework first
	Lines   []TimelineLine  `json:"lines"`
	Lanes   []TimelineLane  `json:"lanes"`            // by interval
	Phases  []PhaseSpan     `json:"phases,omitempty"` // of a training program, in the order of time
}

// TimelineKey is one key of the grouping.
type TimelineKey struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
}

// TimelineLevel is one level over time, on all devices that the filters keep.
type TimelineLevel struct {
	Level string        `json:"level"`
	Bins  []TimelineBin `json:"bins"`
}

// TimelineBin is the highest moment of one interval.
type TimelineBin struct {
	PeakBytes uint64         `json:"peak_bytes"`
	PeakNS    int64          `json:"peak_time_ns"`    // the first such moment, or the interval's beginning
	Phase     string         `json:"phase,omitempty"` // of the allocation that reached it; "" unknown, or none did
	Idle      uint64         `json:"idle_bytes"`      // memory that the framework's allocator held idle then
	Held      []TimelinePart `json:"held"`            // by key, ascending

	Allocs uint64 `json:"-"` // number of the level's latest allocation then
}

// TimelinePart is the bytes of a key.
type TimelinePart struct {
	Key   uint32 `json:"key"` // index of Timeline.Keys
	Bytes uint64 `json:"bytes"`
}

// Names of lines.
const (
	LineFramework = LevelFramework
	LineDriver    = LevelDriver
	LineReserved  = "reserved" // held by the framework's allocator
	LineUsed      = "used"     // as reported by the device, for all processes
)

// TimelineLine is the highest value of one figure in each interval.
type TimelineLine struct {
	Name      string   `json:"name"`
	Device    int16    `json:"device"`
	PeakBytes []uint64 `json:"peak_bytes"`
}

// TimelineLane is the events of one interval.
type TimelineLane struct {
	Steps     uint64   `json:"steps,omitempty"` // that began
	FirstStep uint64   `json:"first_step,omitempty"`
	LastStep  uint64   `json:"last_step,omitempty"`
	Epochs    uint64   `json:"epochs,omitempty"`
	LastEpoch uint64   `json:"last_epoch,omitempty"`
	Marks     uint64   `json:"marks,omitempty"`
	MarkNames []string `json:"mark_names,omitempty"` // the first TimelineMarks of them
	OOMs      uint64   `json:"ooms,omitempty"`       // allocations refused for lack of memory

	// the parts of the interval by phase, in the order of their first allocations
	Phases []PhasePart `json:"phases,omitempty"`
}

// PhaseSpan is an interval in which the main level's allocations were made in one phase of a training program: from the
// first of consecutive ones to the last. If there are more than MaxPhaseSpans of them, consecutive ones are joined, and
// the span begins with the first one and ends with the last one; its parts stay exact.
type PhaseSpan struct {
	FromNS int64       `json:"from_ns"`
	ToNS   int64       `json:"to_ns"`
	Parts  []PhasePart `json:"parts"` // in the order of their first allocations; several only of joined spans
}

// PhasePart is the part of an interval that belongs to a phase.
type PhasePart struct {
	Phase  string `json:"phase"`       // one of rules.Words(rules.Phase), but for "other"
	NS     int64  `json:"ns"`          // from a row's first allocation to its last, added up over rows
	Allocs uint64 `json:"alloc_count"` // allocations in the phase
}

// MaxPhaseSpans bounds the phases of a run.
const MaxPhaseSpans = 2048

// AddPhase adds to a phase's part of a list.
func AddPhase(list []PhasePart, phase string, ns int64, allocs uint64) []PhasePart {
	for i := range list {
		if list[i].Phase == phase {
			list[i].NS += ns
			list[i].Allocs += allocs
			return list
		}
	}
	return append(list, PhasePart{phase, ns, allocs})
}

// JoinPhases adds up two lists of parts, which stay as they are.
func JoinPhases(a, b []PhasePart) []PhasePart {
	a = slices.Clone(a)
	for _, p := range b {
		a = AddPhase(a, p.Phase, p.NS, p.Allocs)
	}
	return a
}

// JoinPhaseSpan joins two spans that follow each other.
func JoinPhaseSpan(a, b PhaseSpan) PhaseSpan {
	return PhaseSpan{a.FromNS, b.ToNS, JoinPhases(a.Parts, b.Parts)}
}

// TimelineMarks is how many names of marks an interval keeps.
const TimelineMarks = 3

// JoinBin joins two consecutive intervals: the higher moment is kept, of equal ones the first.
func JoinBin(a, b TimelineBin) TimelineBin {
	if b.PeakBytes > a.PeakBytes {
		return b
	}
	return a
}

// JoinLane joins two intervals that follow each other.
func JoinLane(a, b TimelineLane) TimelineLane {
	if a.Steps == 0 {
		a.FirstStep = b.FirstStep
	}
	if b.Steps > 0 {
		a.LastStep = b.LastStep
	}
	if b.Epochs > 0 {
		a.LastEpoch = b.LastEpoch
	}
	a.Steps += b.Steps
	a.Epochs += b.Epochs
	a.Marks += b.Marks
	a.OOMs += b.OOMs
	names := append(slices.Clip(a.MarkNames), b.MarkNames...)
	a.MarkNames = names[:min(len(names), TimelineMarks)]
	a.Phases = JoinPhases(a.Phases, b.Phases)
	return a
}

// JoinPairs joins every two neighbours of a list.
func JoinPairs[T any](list []T, join func(a, b T) T) []T {
	joined := make([]T, 0, (len(list)+1)/2)
	for i := 0; i < len(list); i += 2 {
		if i+1 < len(list) {
			joined = append(joined, join(list[i], list[i+1]))
		} else {
			joined = append(joined, list[i])
		}
	}
	return joined
}

// Bins is how many intervals there are.
func (t *Timeline) Bins() int { return len(t.Lanes) }

// Joined is the next coarser level of detail: intervals of twice the width.
func (t *Timeline) Joined() *Timeline {
	v := *t
	v.WidthNS *= 2
	v.Levels, v.Lines = nil, nil
	for _, l := range t.Levels {
		v.Levels = append(v.Levels, TimelineLevel{l.Level, JoinPairs(l.Bins, JoinBin)})
	}
	for _, l := range t.Lines {
		v.Lines = append(v.Lines, TimelineLine{l.Name, l.Device, JoinPairs(l.PeakBytes, func(a, b uint64) uint64 {
			return max(a, b)
		})})
	}
	v.Lanes = JoinPairs(t.Lanes, JoinLane)
	return &v
}

// AtMost is the finest level of detail with at most bins intervals.
func (t *Timeline) AtMost(bins int) *Timeline {
	for t.Bins() > max(bins, 1) {
		t = t.Joined()
	}
	return t
}

// Level returns a level, nil if it was not used.
func (t *Timeline) Level(level string) *TimelineLevel {
	for i := range t.Levels {
		if t.Levels[i].Level == level {
			return &t.Levels[i]
		}
	}
	return nil
}

// Sum adds up the lines of a name over all devices: in each interval, the sum of their highest values. nil if there are
// none.
func (t *Timeline) Sum(name string) []uint64 {
	var sum []uint64
	for _, l := range t.Lines {
		if l.Name != name {
			continue
		}
		if sum == nil {
			sum = make([]uint64, len(l.PeakBytes))
		}
		for i, bytes := range l.PeakBytes {
			sum[i] += bytes
		}
	}
	return sum
}

// Begin is when an interval begins, End when it ends.
func (t *Timeline) Begin(bin int) int64 { return t.FromNS + int64(bin)*t.WidthNS }

// End is when an interval ends.
func (t *Timeline) End(bin int) int64 { return min(t.Begin(bin+1), t.EndNS) }

// Name sets the keys of the parts of all intervals: names are those of the parts' present numbers. Parts of the same
// name are joined, and keys are ordered by the most that they hold at a highest moment, those of the first level before
// others.
func (t *Timeline) Name(names []TimelineKey) {
	number := make(map[TimelineKey]uint32)
	same := make([]uint32, len(names))
	for i, name := range names {
		n, known := number[name]
		if !known {
			n = uint32(len(t.Keys))
			number[name] = n
			t.Keys = append(t.Keys, name)
		}
		same[i] = n
	}
	first, most := make([]uint64, len(t.Keys)), make([]uint64, len(t.Keys))
	t.rename(same)
	t.eachBin(func(level int, b *TimelineBin) {
		for _, p := range b.Held {
			if most[p.Key] = max(most[p.Key], p.Bytes); level == 0 {
				first[p.Key] = max(first[p.Key], p.Bytes)
			}
		}
	})
	order := make([]uint32, len(t.Keys))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(first[b], first[a]), cmp.Compare(most[b], most[a]),
			cmp.Compare(t.Keys[a].Key, t.Keys[b].Key))
	})
	places, sorted := make([]uint32, len(order)), make([]TimelineKey, len(order))
	for place, n := range order {
		places[n], sorted[place] = uint32(place), t.Keys[n]
	}
	for len(sorted) > 0 && most[order[len(sorted)-1]] == 0 { // never at a highest moment
		sorted = sorted[:len(sorted)-1]
	}
	t.Keys = sorted
	t.rename(places)
}

// rename renumbers parts, joins those of the same number, and sorts them.
func (t *Timeline) rename(to []uint32) {
	t.eachBin(func(_ int, b *TimelineBin) {
		for i := range b.Held {
			b.Held[i].Key = to[b.Held[i].Key]
		}
		slices.SortFunc(b.Held, func(x, y TimelinePart) int { return cmp.Compare(x.Key, y.Key) })
		kept := b.Held[:0]
		for _, p := range b.Held {
			if n := len(kept); n > 0 && kept[n-1].Key == p.Key {
				kept[n-1].Bytes += p.Bytes
			} else {
				kept = append(kept, p)
			}
		}
		b.Held = kept
	})
}

func (t *Timeline) eachBin(visit func(level int, b *TimelineBin)) {
	for l := range t.Levels {
		for i := range t.Levels[l].Bins {
			visit(l, &t.Levels[l].Bins[i])
		}
	}
}
