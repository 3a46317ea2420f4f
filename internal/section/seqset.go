// Package seqset keeps sets of order numbers.
package section

import (
	"cmp"
	"iter"
	"slices"
)

// SeqSet is a set of order numbers kept as intervals: a dense run costs one entry however long it is. The zero value is
// an empty set.
type SeqSet struct {
	// chunks hold the intervals in ascending order; none is empty, and each holds at most chunkSpans, so that an
	// insertion in the middle moves little.
	chunks [][]span
	count  uint64
}

// span is a closed interval.
type span struct{ lo, hi uint64 }

const chunkSpans = 512

// Add puts seq into the set and reports whether it was new.
func (s *SeqSet) Add(seq uint64) bool {
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, []span{{seq, seq}})
		s.count = 1
		return true
	}
	last := s.chunks[len(s.chunks)-1]
	if top := &last[len(last)-1]; seq > top.hi && seq-top.hi == 1 {
		top.hi = seq
		s.count++
		return true
	}
	return s.insert(seq)
}

// AddRange puts lo..hi, both included, into the set. It costs as much as adding one number where the range begins above
// the highest number of the set.
func (s *SeqSet) AddRange(lo, hi uint64) {
	if lo > hi {
		return
	}
	if top, ok := s.Max(); !ok || lo > top {
		s.Add(lo)
		last := s.chunks[len(s.chunks)-1]
		last[len(last)-1].hi = hi
		s.count += hi - lo
		return
	}
	for seq := lo; ; seq++ {
		s.Add(seq)
		if seq == hi {
			return
		}
	}
}

// insert adds seq anywhere in the set.
func (s *SeqSet) insert(seq uint64) bool {
	c, i := s.find(seq)
	chunk := s.chunks[c]
	if i < len(chunk) && chunk[i].lo <= seq {
		return false
	}
	s.count++
	// chunk[i] is the first span above seq (if any is left in this chunk); below is the span before it, wherever it is.
	var below *span
	if i > 0 {
		below = &chunk[i-1]
	} else if c > 0 {
		below = &s.chunks[c-1][len(s.chunks[c-1])-1]
	}
	joinsBelow := below != nil && below.hi+1 == seq
	joinsAbove := i < len(chunk) && chunk[i].lo-1 == seq
	switch {
	case joinsBelow && joinsAbove:
		below.hi = chunk[i].hi
		s.remove(c, i)
	case joinsBelow:
		below.hi = seq
	case joinsAbove:
		chunk[i].lo = seq
	default:
		s.place(c, i, span{seq, seq})
	}
	return true
}

// find returns the chunk and the index in it of the first span whose hi is at least seq; past the last span, the index
// is the last chunk's length.
func (s *SeqSet) find(seq uint64) (chunk, index int) {
	chunk, _ = slices.BinarySearchFunc(s.chunks, seq, func(c []span, seq uint64) int {
		return cmp.Compare(c[len(c)-1].hi, seq)
	})
	if chunk == len(s.chunks) {
		return chunk - 1, len(s.chunks[chunk-1])
	}
	index, _ = slices.BinarySearchFunc(s.chunks[chunk], seq, func(sp span, seq uint64) int {
		return cmp.Compare(sp.hi, seq)
	})
	return chunk, index
}

// place inserts a span at an index, splitting a chunk that is full. A chunk that is full at its end starts a new one,
// so that ascending spans fill their chunks.
func (s *SeqSet) place(c, i int, sp span) {
	if len(s.chunks[c]) < chunkSpans {
		s.chunks[c] = slices.Insert(s.chunks[c], i, sp)
		return
	}
	if i == chunkSpans && c == len(s.chunks)-1 {
		s.chunks = append(s.chunks, []span{sp})
		return
	}
	upper := slices.Clone(s.chunks[c][chunkSpans/2:])
	s.chunks[c] = s.chunks[c][:chunkSpans/2]
	s.chunks = slices.Insert(s.chunks, c+1, upper)
	if i > chunkSpans/2 {
		c, i = c+1, i-chunkSpans/2
	}
	s.chunks[c] = slices.Insert(s.chunks[c], i, sp)
}

func (s *SeqSet) remove(c, i int) {
	s.chunks[c] = slices.Delete(s.chunks[c], i, i+1)
	if len(s.chunks[c]) == 0 {
		s.chunks = slices.Delete(s.chunks, c, c+1)
	}
}

// Contains reports whether seq is in the set.
func (s *SeqSet) Contains(seq uint64) bool {
	if len(s.chunks) == 0 {
		return false
	}
	c, i := s.find(seq)
	return i < len(s.chunks[c]) && s.chunks[c][i].lo <= seq
}

// Len returns the number of order numbers in the set.
func (s *SeqSet) Len() uint64 { return s.count }

// Max returns the highest number in the set; ok is false if it is empty.
func (s *SeqSet) Max() (seq uint64, ok bool) {
	if len(s.chunks) == 0 {
		return 0, false
	}
	last := s.chunks[len(s.chunks)-1]
	return last[len(last)-1].hi, true
}

// Gaps returns how many numbers from 1 up to the highest one are missing. Order numbers begin at 1; 0 is not counted.
func (s *SeqSet) Gaps() uint64 {
	top, ok := s.Max()
	if !ok {
		return 0
	}
	present := s.count
	if s.chunks[0][0].lo == 0 {
		present--
	}
	return top - present
}

// Spans yields the ranges of numbers in the set, both ends included, in ascending order.
func (s *SeqSet) Spans() iter.Seq2[uint64, uint64] {
	return func(yield func(lo, hi uint64) bool) {
		for _, chunk := range s.chunks {
			for _, present := range chunk {
				if !yield(present.lo, present.hi) {
					return
				}
			}
		}
	}
}

// Absent yields the ranges of numbers, both ends included, that are missing from 1 to last, and to the highest of the
// set if that is higher.
func (s *SeqSet) Absent(last uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(lo, hi uint64) bool) {
		next := uint64(1)
		for _, chunk := range s.chunks {
			for _, present := range chunk {
				if present.lo > next && !yield(next, present.lo-1) {
					return
				}
				next = max(next, present.hi+1) // wraps to 0 after the last number there is, where max keeps it
			}
		}
		if top, _ := s.Max(); last > top {
			yield(top+1, last)
		}
	}
}
