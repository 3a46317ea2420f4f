package trace

import (
	"slices"
	"strconv"
	"strings"
)

// What the recorder knew of its order numbers when it stopped. Without it a reader could not tell numbers of calls that
// had not returned, which were drawn and which no event will ever have, from numbers whose events are lost; nor see
// that the highest numbers are missing.
const (
	numbersKey  = "process.numbers"   // order numbers drawn: the highest one
	inFlightKey = "process.in_flight" // for each thread that was inside a call, the lowest number that it may have drawn for it, ascending
)

const (
	// numbersPerCall is how many numbers a thread has drawn at most and not yet used: one for what it frees, one for
	// what is recorded inside of that. Only signal handlers that free in the middle of a free have more; their numbers
	// count as lost.
	numbersPerCall = 2
	// maxInFlight bounds the calls that are believed: a spool has no more rings.
	maxInFlight = 4096
)

// Drawn says which order numbers a recorder had given away: all up to Last, some of which may never come.
type Drawn struct {
	Last     uint64
	InFlight []uint64 // for each thread inside a call, the lowest number that may be its own
	LeftOut  uint64   // numbers of events that were left out on purpose, see Thinned
}

// Info returns it as facts about the run.
func (d Drawn) Info() Info {
	info := Info{numbersKey: strconv.FormatUint(d.Last, 10)}
	if len(d.InFlight) == 0 {
		return info
	}
	bounds := slices.Sorted(slices.Values(d.InFlight))
	words := make([]string, 0, len(bounds))
	for _, bound := range bounds {
		words = append(words, strconv.FormatUint(bound, 10))
	}
	info[inFlightKey] = strings.Join(words, " ")
	return info
}

// drawnFrom reads what Info wrote. Traces of recorders that did not say have the zero value.
func drawnFrom(info Info) Drawn {
	d := Drawn{LeftOut: ThinnedFrom(info).Events}
	d.Last, _ = strconv.ParseUint(info[numbersKey], 10, 64)
	for word := range strings.FieldsSeq(info[inFlightKey]) {
		bound, err := strconv.ParseUint(word, 10, 64)
		if err != nil || len(d.InFlight) == maxInFlight {
			break
		}
		d.InFlight = append(d.InFlight, bound)
	}
	return d
}

// Missing returns how many numbers from 1 to d.Last, and to the highest of the set, are not in the set: gaps, which
// nothing explains, and those of calls in flight. A call explains numbers from its own lowest one on; each number is
// explained once.
func (s *SeqSet) Missing(d Drawn) (gaps, inFlight uint64) {
	top, _ := s.Max()
	missing := s.Gaps()
	if d.Last > top {
		missing += d.Last - top
	}
	missing -= min(missing, d.LeftOut)
	if missing == 0 || len(d.InFlight) == 0 {
		return missing, 0
	}
	e := explainer{bounds: slices.Sorted(slices.Values(d.InFlight))}
	next := uint64(1)
	for _, chunk := range s.chunks {
		for _, present := range chunk {
			if present.lo > next {
				e.explain(next, present.lo-1)
			}
			next = max(next, present.hi+1) // wraps to 0 behind the last number there is, where max keeps it
		}
	}
	if d.Last > top {
		e.explain(top+1, d.Last)
	}
	explained := min(missing, e.explained)
	return missing - explained, explained
}

// explainer gives missing numbers, in ascending order, to the calls whose own they may be.
type explainer struct {
	bounds    []uint64 // of calls that cannot explain anything yet
	room      uint64   // numbers that the others can still explain
	explained uint64
}

// explain takes the missing numbers from lo to hi.
func (e *explainer) explain(lo, hi uint64) {
	for {
		for len(e.bounds) > 0 && e.bounds[0] <= lo {
			e.bounds, e.room = e.bounds[1:], e.room+numbersPerCall
		}
		end := hi
		if len(e.bounds) > 0 {
			end = min(end, e.bounds[0]-1)
		}
		n := min(e.room, end-lo+1)
		e.room, e.explained = e.room-n, e.explained+n
		if end == hi {
			return
		}
		lo = end + 1
	}
}
