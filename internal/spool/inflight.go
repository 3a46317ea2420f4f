package spool

import (
	"math"

	"memtrace/trace"
)

// Drawn holds the order numbers that the recorder has drawn. Every number up to Last that is not committed after this
// read belongs to one of the calls in flight, or is lost: the numbers are read before the calls, and a thread announces
// its call before it draws.
func (s *Spool) Drawn() trace.Drawn {
	d := trace.Drawn{Last: s.drawn()}
	for i := range s.ringsUsed() {
		if bound := s.data.load64(s.ringOffset(i) + ringInflight); bound != 0 {
			d.InFlight = append(d.InFlight, bound)
		}
	}
	return d
}

// dropped returns how many records had drawn their number when they were dropped, at most: a thread without a ring
// draws none.
func (s *Spool) dropped() uint64 {
	records, _, _ := s.Lost()
	return records - s.data.load64(offLostNoRing)
}

// drawn is the last order number that was drawn. Readers take records up to it, so a header with too low a number would
// hide records of the rings: then the records are trusted.
func (s *Spool) drawn() uint64 { return max(s.data.load64(offSeq), s.committed) }

// compareNumbers looks for records numbered above the header's number, which a recorder never writes: it draws a number
// before it commits one. A number too high for the size of the spool is rejected too.
func (s *Spool) compareNumbers() {
	used := min(s.data.load32(offSegmentsUsed), s.segmentsMax)
	most := max(s.data.load64(offSeq), s.data.load64(offDrainedSeq))
	if room := uint64(used+1) * segmentSlots; most < math.MaxUint64-room {
		most += room
	}
	highest := uint64(0)
	for number := uint32(1); number <= used; number++ {
		base, ok := s.segmentOffset(number)
		if !ok {
			break
		}
		for slot := uint64(1); slot < segmentSlots; slot++ {
			if seq := s.data.load64(base + slot*recordSize + recSeq); seq > highest && seq <= most {
				highest = seq
			}
		}
	}
	if highest > s.data.load64(offSeq) { // read last: a recorder that lives has drawn all that was found
		s.committed = highest
	}
}
