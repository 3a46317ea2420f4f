package spool

import (
	"math"
	"slices"

	"memtrace/trace"
)

// lossBooks record which lost records were reported, by the drainer in the file or here. The drainer reports them when
// it reads the counters; what it did not report was lost after all that it wrote.
type lossBooks struct {
	lost, enders   uint64 // records that the spool's counters count; of them, those that ended memory
	file, reported uint64 // records that the file reported so far, and those reported in all
	reportedEnders uint64 // of those reported, the ones that ended memory
	unsure         bool   // it is not known how many of them did
	until          uint64 // number drawn last when the counters were read
	from           uint64 // number from which on records may be missing
	unplaced       bool   // some of the records may have been lost at any time
}

// look finds out where records that the counters count may be missing.
func (l *lossBooks) look(s *Spool) {
	elsewhere := s.data.load64(offLostNested) + s.data.load64(offLostNoRing) // than in a ring that was full
	l.lost, l.enders, l.from = elsewhere, 0, math.MaxUint64
	for i := range s.ringsUsed() {
		others, enders := s.lostOf(i)
		if l.lost, l.enders = l.lost+others+enders, l.enders+enders; others+enders > 0 {
			l.from = min(l.from, s.lostFrom(i))
		}
	}
	l.until, l.unplaced = s.data.load64(offSeq), elsewhere > 0 && s.Moved()
	if elsewhere > 0 {
		l.unsure, l.from = true, 0
	}
}

// correct reduces a lost event of the file to the records that were not reported before, and reports whether there are
// any.
func (l *lossBooks) correct(e *trace.Event) bool {
	l.file += e.Count
	if l.file <= l.reported {
		return false
	}
	if more := l.file - l.reported; more != e.Count {
		e.Count, e.Size = more, 0
	}
	l.reported = l.file
	word := e.Lost()
	l.reportedEnders += word.Enders
	l.unsure = l.unsure || !word.Known
	return true
}

// unreported returns a lost event for what was not reported yet, and its place among the spool's events; top is the
// highest number that was returned before, 0 if these are the first events.
func (l *lossBooks) unreported(top uint64, events []trace.Event) (e trace.Event, at int, ok bool) {
	if l.lost <= l.reported {
		return trace.Event{}, 0, false
	}
	word := trace.Lost{Count: l.lost - l.reported, Until: l.until}
	if word.Known = !l.unsure && l.enders >= l.reportedEnders && l.enders-l.reportedEnders <= word.Count; word.Known {
		word.Enders = l.enders - l.reportedEnders
		l.reportedEnders = l.enders
	}
	l.reported = l.lost
	if l.unplaced {
		word.Until = 0
	}
	for top == 0 && at < len(events) && events[at].Seq < l.from {
		at++
	}
	e = word.Event(top) // a lower one would make it late where it is written to the file
	if at > 0 {
		e.Seq, e.Time = events[at-1].Seq, events[at-1].Time
	}
	return e, at, true
}

// Losses reports lost records as they are found, in the order that trace/lost.go requires.
type Losses struct {
	cursor *Cursor
	rings  []ringLosses // by ring: of its counters, already seen
	// the same of records that were lost without a ring, or in a signal handler that interrupted the recorder
	elsewhere uint64
	first     uint64 // what was not counted at the last look has this number or a higher one
	held      []heldLoss
}

// ringLosses are what a ring's counters count: records that ended memory, and others.
type ringLosses struct{ others, enders uint64 }

// heldLoss is a lost event that concerns nothing that was returned so far: a spool is full at its newest end, and read
// at its oldest.
type heldLoss struct {
	event trace.Event
	first uint64
}

// maxHeld bounds the lost events that are held; what comes beyond is counted with the last of them, as if it had been
// lost when that was.
const maxHeld = 1 << 12

// NewLosses returns the losses of the spool that a cursor reads, none of which was reported yet.
func NewLosses(c *Cursor) *Losses { return &Losses{cursor: c} }

// Take returns lost events for records that were dropped. Call it right after Collect and write what it returns before
// what Collect returned: what was lost before one of these events is counted by then, since a call that may have lost
// its record holds the watermark back. Events that concern later records only are held until those are collected; all:
// none will be.
func (l *Losses) Take(all bool) []trace.Event {
	first := l.look()
	var due []trace.Event
	l.held = slices.DeleteFunc(l.held, func(h heldLoss) bool {
		if !all && h.first >= l.cursor.low {
			return false
		}
		due = append(due, l.place(h.event))
		return true
	})
	l.first = first
	return due
}

// look counts what is new, and returns the new value of first. Numbers are read before the counters, and those that
// calls have drawn before they lose their record; the last number after them.
func (l *Losses) look() (first uint64) {
	c := l.cursor
	first = c.spool.data.load64(offSeq) + 1
	used := c.spool.ringsUsed()
	for i := range used {
		if bound := c.spool.data.load64(c.spool.ringOffset(i) + ringInflight); bound != 0 {
			first = min(first, bound)
		}
	}
	before := len(l.held)
	add := func(word trace.Lost, from uint64, thread trace.ThreadID) {
		if word.Count == 0 {
			return
		}
		if last := len(l.held) - 1; last >= maxHeld {
			with, held := l.held[last].event.Lost(), &l.held[last].event
			*held = trace.Lost{Count: with.Count + word.Count, Enders: with.Enders + word.Enders, Known: with.Known &&
				word.Known}.Event(0)
			before = min(before, last)
			return
		}
		e := word.Event(0)
		e.Thread = thread
		l.held = append(l.held, heldLoss{e, from})
	}
	for i := range c.rings {
		for len(l.rings) <= i {
			l.rings = append(l.rings, ringLosses{})
		}
		var now ringLosses
		now.others, now.enders = c.spool.lostOf(uint32(i))
		seen, from := l.rings[i], l.first
		if l.rings[i] = now; seen == (ringLosses{}) { // these are the first that the ring lost
			from = max(from, min(c.spool.lostFrom(uint32(i)), c.spool.drawn()+1))
		}
		enders := more(now.enders, seen.enders)
		add(trace.Lost{Count: more(now.others, seen.others) + enders, Enders: enders, Known: true}, from,
			c.rings[i].thread)
	}
	elsewhere := c.spool.data.load64(offLostNested) + c.spool.data.load64(offLostNoRing)
	add(trace.Lost{Count: more(elsewhere, l.elsewhere)}, l.first, 0)
	l.elsewhere = elsewhere
	until := max(c.spool.data.load64(offSeq), 1)
	for i := range l.held[before:] {
		l.held[before+i].event.Handle = until
	}
	return first
}

// more returns by how much a counter has grown.
func more(now, seen uint64) uint64 { return now - min(now, seen) }

// place assigns an event the number of an adjacent one. One below the file's watermark would make it late.
func (l *Losses) place(e trace.Event) trace.Event {
	c := l.cursor
	e.Seq, e.Time = max(c.low, 1)-1, c.Now()
	if len(c.events) > 0 && c.events[0].Flags&trace.FlagLate == 0 {
		e.Seq, e.Time = c.events[0].Seq, c.events[0].Time
	}
	return e
}
