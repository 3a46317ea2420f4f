package spool

import (
	"math"
	"slices"

	"memtrace/trace"
)

// maxCollect bounds how many records one Collect takes, and with it the drainer's memory.
const maxCollect = 16 << 10

// key orders the records of one Collect without moving them.
type key struct {
	seq    uint64
	offset uint64
	ring   uint32
}

// Cursor reads a spool's committed records in order of their numbers, again and again while the recorder runs.
//
// A round takes the records of a range of numbers. A number is drawn once, so that the range bounds the records,
// however many rings hold them, and a ring whose next number is higher costs one comparison. What a round does grows
// with its records, not with the number of rings.
type Cursor struct {
	spool  *Spool
	rings  []ringCursor
	dict   dictCursor
	clock  clock
	keys   []key
	order  keyOrder
	events []trace.Event
	low    uint64 // every number below was returned, except late ones
	end    uint64 // numbers from here on are left; 0: none is
}

// NewCursor returns a cursor at the position that was last published (see Release), which is the start for a spool
// without a drainer.
func NewCursor(s *Spool) *Cursor { return &Cursor{spool: s, low: s.data.load64(offDrainedSeq) + 1} }

// Collect returns records that are complete: all those numbered below the returned watermark that were not returned
// before, ordered, plus stragglers flagged late. While a thread is inside a free, numbers from its own on are held
// back; force returns them all the same. more reports that further records are complete. The events are valid until the
// next call.
func (c *Cursor) Collect(force bool) (events []trace.Event, watermark uint64, more bool) {
	c.clock = c.spool.readClock()
	watermark = max(c.visible(force), c.low)
	first := c.look()
	if upto := min(max(first, c.low)+maxCollect, c.lossAfter(first)); upto < watermark {
		watermark, more = upto, true
	}
	c.keys = c.keys[:0]
	for i := range c.rings {
		if r := &c.rings[i]; r.lowest != 0 && r.lowest < watermark {
			more = !c.take(uint32(i), watermark) || more
		}
	}
	c.decode()
	c.low = watermark
	return c.events, watermark, more
}

// visible returns the number below which every record that is to come was committed; with force, below which every
// number was returned.
func (c *Cursor) visible(force bool) uint64 {
	s := c.spool
	bound := s.drawn() + 1
	if c.end != 0 {
		bound = min(bound, c.end)
	}
	s.follow()
	used := s.ringsUsed()
	for uint32(len(c.rings)) < used {
		c.rings = append(c.rings, ringCursor{})
	}
	if !force {
		for i := range used {
			if inflight := s.data.load64(s.ringOffset(i) + ringInflight); inflight != 0 {
				bound = min(bound, inflight)
			}
		}
	}
	return bound
}

// look returns the lowest number of all records that were not taken, and notes each ring's; the highest number there is
// if all were taken.
func (c *Cursor) look() uint64 {
	lowest := uint64(math.MaxUint64 - maxCollect)
	for i := range c.rings {
		r := &c.rings[i]
		if r.at.segment == 0 && !c.begin(uint32(i), r) {
			continue
		}
		r.scan(c.spool)
		if r.lowest = r.next(c.spool); r.lowest != 0 {
			lowest = min(lowest, r.lowest)
		}
	}
	return lowest
}

// lossAfter returns the number, above the given one, from which on records of a ring may be missing: what precedes it
// is returned alone, so that Losses need not treat it as uncertain.
func (c *Cursor) lossAfter(first uint64) uint64 {
	lowest := uint64(math.MaxUint64)
	for i := range c.rings {
		if from := c.spool.lostFrom(uint32(i)); from > max(first, c.low) {
			lowest = min(lowest, from)
		}
	}
	return lowest
}

// begin finds where ring i is to be read from; it returns false while it is unused.
func (c *Cursor) begin(i uint32, r *ringCursor) bool {
	s, off := c.spool, c.spool.ringOffset(i)
	first := s.data.load32(off + ringFirstSegment)
	if first == 0 {
		return false
	}
	r.at = position{first, 1}
	if seg := s.data.load32(off + ringReadSegment); seg != 0 {
		r.at = position{seg, s.data.load32(off + ringReadSlot)}
	}
	r.far, r.start = r.at, r.at.segment
	r.thread = trace.ThreadID(s.data.load32(off + ringThread))
	return true
}

// take appends the keys of ring i's records below the watermark that were not taken before, and moves its cursor up to
// the first that stays. It returns false where it stopped at more records than the watermark allows, which only a
// damaged spool has; there a chain may also lead back to records that it has passed.
func (c *Cursor) take(i uint32, watermark uint64) bool {
	r := &c.rings[i]
	room := len(c.spool.data) / recordSize // no more fit
	most := min(4*maxCollect, room)
	stays := false
	for at, passed := r.at, 0; len(c.keys) < most; at.slot++ {
		if passed++; passed > room {
			return true
		}
		r.scan(c.spool)
		seq, off, committed := r.record(c.spool, &at)
		if !committed || seq >= watermark && !r.hides(watermark) {
			return true
		}
		stays = stays || seq >= watermark
		if seq < watermark && r.isNew(seq, stays) {
			c.keys = append(c.keys, key{seq, off, i})
		}
		if !stays {
			r.at = position{at.segment, at.slot + 1}
			r.between--
		}
	}
	return false
}

// decode turns the keys into events, in order.
func (c *Cursor) decode() {
	c.keys = c.order.sort(c.keys)
	c.events = slices.Grow(c.events[:0], len(c.keys))[:len(c.keys)]
	for i, k := range c.keys {
		e := &c.events[i]
		c.spool.decode(e, k.offset, &c.clock)
		e.Thread = c.rings[k.ring].thread
		if k.seq < c.low {
			e.Flags |= trace.FlagLate
		}
	}
}

// Dictionary passes on the dictionary entries that are new since the last call. Call it after Collect and before
// writing the events.
func (c *Cursor) Dictionary(out Dictionary) error { return c.dict.read(c.spool, out) }

// Backlog returns how many numbers were drawn whose records Collect has not returned.
func (c *Cursor) Backlog() uint64 {
	drawn := c.spool.drawn() + 1
	return drawn - min(drawn, c.low)
}

// Now returns the time of the clock's latest pair, in nanoseconds since the trace's time base.
func (c *Cursor) Now() int64 { return c.clock.last.monotonic - c.clock.first.monotonic }
