package spool

import "sync/atomic"

// Release publishes to the recorder that everything returned by Collect is safe in the trace file: read positions are
// published, used-up segments and the rings of ended threads go back to it. Only the process's own drainer may call it,
// on a writable spool, after a successful write.
func (c *Cursor) Release() {
	for i := range c.rings {
		c.releaseRing(uint32(i))
	}
	atomic.StoreUint64(c.spool.data.word64(offDrainedSeq), c.low-1)
	c.spool.wakeWaiting()
}

func (c *Cursor) releaseRing(i uint32) {
	s, r := c.spool, &c.rings[i]
	if r.at.segment == 0 {
		return
	}
	off := s.ringOffset(i)
	dead := s.data.load32(off+ringState) == ringDead
	from := s.data.load32(off + ringReadSegment)
	if from == 0 {
		from = s.data.load32(off + ringFirstSegment)
	}
	// The state was read before the emptiness: a thread that ended after that is recycled next time.
	done := dead && len(r.ahead) == 0 && r.ends(s)
	atomic.StoreUint32(s.data.word32(off+ringReadSlot), r.at.slot)
	atomic.StoreUint32(s.data.word32(off+ringReadSegment), r.at.segment)
	r.start = r.at.segment
	for from != r.at.segment {
		base, ok := s.segmentOffset(from)
		if !ok {
			return
		}
		next := s.data.load32(base + segmentNext)
		s.recycle(from, segmentSlots)
		from = next
	}
	if done {
		s.recycle(r.at.segment, r.at.slot+1) // the next slot may hold a record that was begun
		*r = ringCursor{}
		atomic.StoreUint32(s.data.word32(off+ringReadSegment), 0)
		atomic.StoreUint32(s.data.word32(off+ringReadSlot), 0)
		atomic.StoreUint32(s.data.word32(off+ringFirstSegment), 0)
		atomic.StoreUint32(s.data.word32(off+ringState), ringFree)
	}
}

// ends reports whether nothing was committed at the cursor or after it. What the thread wrote since the last Collect
// may be where the file has grown since.
func (r *ringCursor) ends(s *Spool) bool {
	s.follow()
	at := r.at
	if _, _, ok := r.record(s, &at); ok {
		return false
	}
	base, valid := s.segmentOffset(at.segment)
	return valid && (at.slot < segmentSlots || s.data.load32(base+segmentNext) == 0)
}

// recycle zeroes the slots of a segment that were used, so that they read as not committed, and pushes it on the
// recorder's free list. A thread that lives shortly uses a few, and each page that is written to costs a page fault.
// The tag in the upper half of the list head changes with every push and pop, so that neither side mistakes a head that
// went and came back.
func (s *Spool) recycle(number, slots uint32) {
	base, ok := s.segmentOffset(number)
	if !ok {
		return
	}
	clear(s.data[base : base+uint64(min(slots, segmentSlots))*recordSize])
	head := s.data.word64(offFreeSegments)
	for {
		old := atomic.LoadUint64(head)
		atomic.StoreUint32(s.data.word32(base+segmentFreeNext), uint32(old))
		if atomic.CompareAndSwapUint64(head, old, (old>>32+1)<<32|uint64(number)) {
			atomic.AddUint32(s.data.word32(offSegmentsFree), 1)
			return
		}
	}
}
