package spool

import (
	"slices"

	"memtrace/trace"
)

// maxCollect bounds how many records one Collect takes, and with it the drainer's memory.
const maxCollect = 16 << 10

// position is a place in a ring's chain: the slot to read next, 1..segmentSlots; segmentSlots means that the segment is used up.
type position struct{ segment, slot uint32 }

// ringCursor is how far one ring was read.
type ringCursor struct {
	at     position
	ahead  map[uint64]struct{} // records behind at that were already taken, by number: a thread commits nested calls before the call around them
	thread trace.ThreadID
	lost   uint64 // of the ring's counter, already reported
}

// key orders the records of one Collect without moving them.
type key struct {
	seq    uint64
	offset uint64
	ring   uint32
}

// Cursor reads a spool's committed records in order of their numbers, again and again while the recorder runs.
type Cursor struct {
	spool  *Spool
	rings  []ringCursor
	dict   dictCursor
	clock  clock
	keys   []key
	order  keyOrder
	events []trace.Event
	low    uint64 // every number below was handed out, except late ones
}

// NewCursor returns a cursor at the place that was last published (see Release), which is the start for a spool that nobody drains.
func NewCursor(s *Spool) *Cursor { return &Cursor{spool: s, low: s.load64(offDrainedSeq) + 1} }

// Collect returns records that are complete: all those numbered below the returned watermark that were not returned before, ordered, plus stragglers flagged
// late. While a thread is inside a free, numbers from its own on are held back; force hands them out all the same. The events are valid until the next call.
func (c *Cursor) Collect(force bool) (events []trace.Event, watermark uint64, more bool) {
	s := c.spool
	c.clock = s.readClock()
	watermark = s.drawn() + 1
	used := s.ringsUsed()
	for uint32(len(c.rings)) < used {
		c.rings = append(c.rings, ringCursor{})
	}
	if !force {
		for i := range used {
			if bound := s.load64(s.ringOffset(i) + ringInflight); bound != 0 {
				watermark = min(watermark, bound)
			}
		}
	}
	c.keys = c.keys[:0]
	quota := max(maxCollect/max(int(used), 1), 64)
	for i := range used {
		unread, left := c.scan(i, quota)
		if left {
			more = true
			watermark = min(watermark, unread)
		}
	}
	watermark = max(watermark, c.low)
	c.take(watermark)
	c.low = watermark
	return c.events, watermark, more
}

// scan appends the keys of ring i's committed records, at most quota; left tells that more stand behind them, the first numbered unread.
func (c *Cursor) scan(i uint32, quota int) (unread uint64, left bool) {
	r := &c.rings[i]
	at, ok := c.start(i, r)
	for n := 0; ok; n++ {
		seq, off, committed := c.spool.record(&at)
		if !committed {
			return 0, false
		}
		if n == quota {
			return seq, true
		}
		c.keys = append(c.keys, key{seq, off, i})
		at.slot++
	}
	return 0, false
}

// start returns where ring i is to be read from; ok is false while nobody has used it.
func (c *Cursor) start(i uint32, r *ringCursor) (position, bool) {
	if r.at.segment != 0 {
		return r.at, true
	}
	s, off := c.spool, c.spool.ringOffset(i)
	first := s.load32(off + ringFirstSegment)
	if first == 0 {
		return position{}, false
	}
	r.at = position{first, 1}
	if seg := s.load32(off + ringReadSegment); seg != 0 {
		r.at = position{seg, s.load32(off + ringReadSlot)}
	}
	r.thread = trace.ThreadID(s.load32(off + ringThread))
	return r.at, true
}

// record returns the record at a position, following the chain to the next segment when this one is used up.
func (s *Spool) record(at *position) (seq, off uint64, ok bool) {
	for range 2 {
		base, valid := s.segmentOffset(at.segment)
		if !valid || at.slot == 0 {
			return 0, 0, false
		}
		if at.slot < segmentSlots {
			off = base + uint64(at.slot)*recordSize
			seq = s.load64(off + recSeq)
			return seq, off, seq != 0
		}
		next := s.load32(base + segmentNext)
		if next == 0 {
			return 0, 0, false
		}
		*at = position{next, 1}
	}
	return 0, 0, false
}

// take turns the keys below the watermark into events and moves the cursors past them.
func (c *Cursor) take(watermark uint64) {
	c.advance(watermark)
	kept := c.keys[:0]
	for _, k := range c.keys {
		if k.seq < watermark && k.offset != 0 {
			kept = append(kept, k)
		}
	}
	c.keys = c.order.sort(kept)
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

// advance moves each ring's cursor over its taken records up to the first that stays, and remembers those taken behind that one. Keys of records that an earlier
// call took are struck out. The keys of a ring stand together, as scan left them.
func (c *Cursor) advance(watermark uint64) {
	stuck := false
	for n := range c.keys {
		k := &c.keys[n]
		if n == 0 || c.keys[n-1].ring != k.ring {
			stuck = false
		}
		r := &c.rings[k.ring]
		_, taken := r.ahead[k.seq]
		if !taken && k.seq >= watermark {
			stuck = true
			continue
		}
		if taken {
			k.offset = 0
		}
		if stuck {
			if r.ahead == nil {
				r.ahead = map[uint64]struct{}{}
			}
			r.ahead[k.seq] = struct{}{}
			continue
		}
		delete(r.ahead, k.seq)
		c.spool.record(&r.at) // follows the chain
		r.at.slot++
	}
}

// Dictionary passes on the dictionary entries that are new since the last call. Call it after Collect and before writing the events.
func (c *Cursor) Dictionary(out Dictionary) error { return c.dict.read(c.spool, out) }

// Lost returns an event for every ring that dropped records since the last call.
func (c *Cursor) Lost() []trace.Event {
	var lost []trace.Event
	for i := range c.rings {
		r := &c.rings[i]
		total := c.spool.load64(c.spool.ringOffset(uint32(i)) + ringLost)
		if total > r.lost {
			lost = append(lost, trace.Event{Kind: trace.EventLost, Seq: max(c.low, 1) - 1, Thread: r.thread, Count: total - r.lost, Time: c.Now()})
			r.lost = total
		}
	}
	return lost
}

// Now returns the time of the clock's latest pair, in nanoseconds since the trace's time base.
func (c *Cursor) Now() int64 { return c.clock.last.monotonic - c.clock.first.monotonic }
