package spool

import (
	"math"
	"slices"

	"memtrace/trace"
)

// scanAhead is how many records of a ring are looked through for numbers lower than those before them: a thread commits
// nested calls before the call around them. What stands behind more records of calls inside comes flagged late.
const scanAhead = 64

// position is a place in a ring's chain: the slot to read next, 1..segmentSlots; segmentSlots means that the segment is
// used up.
type position struct{ segment, slot uint32 }

// ringCursor is how far one ring was read.
type ringCursor struct {
	at      position            // of the first record that was not taken
	ahead   map[uint64]struct{} // records behind at that were taken already, by number
	lowest  uint64              // of the records that were not taken, as of the last look; 0: none
	far     position            // up to here the records were looked through
	between int                 // how many there are from at to far
	high    uint64              // the highest number that was looked through
	lower   []uint64            // numbers between at and far that stand behind higher ones and were not taken
	thread  trace.ThreadID
}

// scan looks through what was committed since, up to scanAhead records behind the cursor.
func (r *ringCursor) scan(s *Spool) {
	for r.between < scanAhead {
		seq, _, ok := s.record(&r.far)
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
		seq, _, ok := s.record(&at)
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

// hides tells whether a record below the watermark stands behind one that is not.
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
