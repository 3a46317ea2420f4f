package trace

import (
	"slices"
	"strconv"
	"strings"

	"memtrace/internal/section"
)

// Contents and place of a lost event:
//
//   - Count records were dropped since the lost event before.
//   - Size-1 of them ended memory: frees, unmappings, destructions. The others may have begun some. Size 0: their kinds
//     are not known.
//   - It is before the first event that one of them may have preceded, so that everything before it can be
//     trusted.
//   - Handle is an order number by which all of them had been lost: what has a higher one came after. Handle 0: neither
//     this nor the place can be relied on.
//
// Earlier recorders wrote Count alone, and wrote it after events that it may concern.

// Lost counts records that were dropped.
type Lost struct {
	Count  uint64
	Enders uint64 // of them, those that ended memory
	Known  bool   // Enders is known
	Until  uint64 // order number by which all were lost; 0: unknown, and so is since when
}

// Event returns the lost event, without thread and time; seq is the number of an event before it.
func (l Lost) Event(seq uint64) Event {
	e := Event{Kind: EventLost, Seq: seq, Count: l.Count, Handle: l.Until}
	if l.Known {
		e.Size = 1 + min(l.Enders, l.Count)
	}
	return e
}

// Lost decodes a lost event.
func (e *Event) Lost() Lost {
	l := Lost{Count: e.Count, Until: e.Handle}
	if e.Size > 0 && e.Size-1 <= e.Count {
		l.Enders, l.Known = e.Size-1, true
	}
	return l
}

// What the recorder of a killed process had dropped, besides records, which lost events count. After an orderly end the
// end section holds it.
const (
	lostThreadsKey    = "process.lost_threads"
	lostDictionaryKey = "process.lost_dictionary"
)

// LostInfo returns what was dropped beside records, threads and dictionary entries, as facts about the run: none if
// nothing was.
func LostInfo(rings, dict uint64) Info {
	info := Info{}
	for key, n := range map[string]uint64{lostThreadsKey: rings, lostDictionaryKey: dict} {
		if n > 0 {
			info[key] = strconv.FormatUint(n, 10)
		}
	}
	return info
}

// lostFrom reads what LostInfo wrote.
func lostFrom(info Info) (rings, dict uint64) {
	rings, _ = strconv.ParseUint(info[lostThreadsKey], 10, 64)
	dict, _ = strconv.ParseUint(info[lostDictionaryKey], 10, 64)
	return rings, dict
}

// tornBefore returns the lost event for the stretches passed over between the last events and these; false if nothing
// was lost.
func (r *Reader) tornBefore(b *Batch) (Event, bool) {
	if r.sections.Torn.Stretches == r.tornReported {
		return Event{}, false
	}
	r.tornReported = r.sections.Torn.Stretches
	rows := b.Rows()
	for i := range rows {
		if e := &rows[i]; e.Flags&FlagLate == 0 && e.Kind != EventLost {
			return r.tornUpTo(e.Seq)
		}
	}
	return Event{}, false
}

// batchOf returns a batch of one event.
func (r *Reader) batchOf(e Event) *Batch {
	r.reported[0] = e
	return RowBatch(r.reported[:])
}

// tornUpTo returns the lost event for the order numbers between those seen and next.
func (r *Reader) tornUpTo(next uint64) (Event, bool) {
	last, _ := r.seqs.Max()
	if next <= last+1 {
		return Event{}, false
	}
	n := next - last - 1
	r.torn += n
	r.tornEvents++
	r.health.Events++
	return Lost{Count: n, Until: next - 1}.Event(last), true
}

// tornAtEnd is tornBefore where no events follow: how many follows from the numbers that the recorder drew and the
// events that it wrote.
func (r *Reader) tornAtEnd() (Event, bool) {
	if r.sections.Torn.Stretches == r.tornReported {
		return Event{}, false
	}
	r.tornReported = r.sections.Torn.Stretches
	next := drawnFrom(r.info).Last + 1
	if seen := r.health.Events - r.tornEvents + r.torn; r.end != nil && r.end.EventCount > seen {
		last, _ := r.seqs.Max()
		next = max(next, last+1+r.end.EventCount-seen)
	}
	return r.tornUpTo(next)
}

// The recorder's order numbers when it stopped. Without them a reader could not distinguish numbers of calls that had
// not returned, which were drawn and which no event will ever have, from numbers whose events are lost; nor see that
// the highest numbers are missing.
const (
	numbersKey = "process.numbers" // order numbers drawn: the highest one
	// for each thread that was inside a call, the lowest number that it may have drawn for it, ascending
	inFlightKey = "process.in_flight"
)

const (
	// numbersPerCall is how many numbers a thread has drawn at most and not yet used: one for what it frees, one for
	// what is recorded inside of that. Only signal handlers that free in the middle of a free have more; their numbers
	// count as lost.
	numbersPerCall = 2
	// maxInFlight bounds the calls that are accepted: a spool has no more rings.
	maxInFlight = 1 << 16
)

// HasDrawn reports whether facts hold which numbers were drawn, which a recording does at its end alone.
func HasDrawn(info Info) bool { return info[numbersKey] != "" }

// Drawn holds the order numbers that a recorder had drawn: all up to Last, some of which may never come.
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

// drawnFrom reads what Info wrote. Traces of recorders that did not write it have the zero value.
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
func (d Drawn) Missing(from *section.SeqSet) (gaps, inFlight uint64) {
	top, _ := from.Max()
	missing := from.Gaps()
	if d.Last > top {
		missing += d.Last - top
	}
	missing -= min(missing, d.LeftOut)
	if missing == 0 || len(d.InFlight) == 0 {
		return missing, 0
	}
	e := explainer{bounds: slices.Sorted(slices.Values(d.InFlight))}
	for lo, hi := range from.Absent(d.Last) {
		e.explain(lo, hi)
	}
	explained := min(missing, e.explained)
	return missing - explained, explained
}

// explainer assigns missing numbers, in ascending order, to the calls that may have drawn them.
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
