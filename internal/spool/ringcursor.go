package spool

import (
	"math"
	"slices"

	"memtrace/trace"
)

// scanAhead is how many records of a ring are looked through for numbers lower than those before them: a thread commits
// nested calls before the call around them. A record after more records of nested calls comes flagged late.
const scanAhead = 64

// position is a place in a ring's chain: the slot to read next, 1..segmentSlots; segmentSlots means that the segment is
// used up.
type position struct{ segment, slot uint32 }

// ringCursor is how far one ring was read.
type ringCursor struct {
	at      position            // of the first record that was not taken
	start   uint32              // the segment that the recorder knows as being read: no later one leads back there
	ahead   map[uint64]struct{} // records after at that were taken already, by number
	lowest  uint64              // of the records that were not taken, as of the last look; 0: none
	far     position            // up to here the records were looked through
	between int                 // how many there are from at to far
	high    uint64              // the highest number that was looked through
	lower   []uint64            // numbers between at and far that follow higher ones and were not taken
	thread  trace.ThreadID
}

// record returns the record at a position, following the chain to the next segment when this one is used up. The chain
// of a spool that was overwritten may lead back to where it began; it ends there, or its records would come again in
// every round.
func (r *ringCursor) record(s *Spool, at *position) (seq, off uint64, ok bool) {
	for range 2 {
		base, valid := s.segmentOffset(at.segment)
		if !valid || at.slot == 0 {
			return 0, 0, false
		}
		if at.slot < segmentSlots {
			off = base + uint64(at.slot)*recordSize
			seq = s.data.load64(off + recSeq)
			return seq, off, seq != 0
		}
		next := s.data.load32(base + segmentNext)
		if next == 0 || next == r.start {
			return 0, 0, false
		}
		*at = position{next, 1}
	}
	return 0, 0, false
}

// scan looks through what was committed since, up to scanAhead records after the cursor.
func (r *ringCursor) scan(s *Spool) {
	for r.between < scanAhead {
		seq, _, ok := r.record(s, &r.far)
		if !ok {
			return
		}
		if seq < r.high {
			r.lower = append(r.lower, seq)
		} else {
			r.high = seq
		}
		r.far.slot++
		r.between++
	}
}

// next returns the lowest number that was looked through and not taken, or 0.
func (r *ringCursor) next(s *Spool) uint64 {
	lowest := uint64(math.MaxUint64)
	for at, n := r.at, 0; n < r.between; n++ {
		seq, _, ok := r.record(s, &at)
		if !ok {
			break
		}
		if _, taken := r.ahead[seq]; !taken {
			lowest = seq
			break
		}
		at.slot++
	}
	for _, seq := range r.lower {
		lowest = min(lowest, seq)
	}
	if lowest == math.MaxUint64 {
		return 0
	}
	return lowest
}

// hides reports whether a record below the watermark follows one that is not.
func (r *ringCursor) hides(watermark uint64) bool {
	return slices.ContainsFunc(r.lower, func(seq uint64) bool { return seq < watermark })
}

// isNew notes that the cursor comes past a record below the watermark, while one before it stays or not, and returns
// whether it was not taken before.
func (r *ringCursor) isNew(seq uint64, stays bool) bool {
	if len(r.ahead) > 0 {
		if _, taken := r.ahead[seq]; taken {
			if !stays {
				delete(r.ahead, seq)
			}
			return false
		}
	}
	if len(r.lower) > 0 {
		if i := slices.Index(r.lower, seq); i >= 0 {
			r.lower = slices.Delete(r.lower, i, i+1)
		}
	}
	if stays {
		if r.ahead == nil {
			r.ahead = map[uint64]struct{}{}
		}
		r.ahead[seq] = struct{}{}
	}
	return true
}
