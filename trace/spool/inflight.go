package spool

import "memtrace/trace"

// Drawn says which order numbers the recorder has given away. Every number up to Last that is not committed behind this look belongs to one of the calls in flight, or is lost:
// the numbers are read before the calls, and a thread announces its call before it draws.
func (s *Spool) Drawn() trace.Drawn {
	d := trace.Drawn{Last: s.load64(offSeq)}
	for i := range s.ringsUsed() {
		if bound := s.load64(s.ringOffset(i) + ringInflight); bound != 0 {
			d.InFlight = append(d.InFlight, bound)
		}
	}
	return d
}

// dropped returns how many records had drawn their number when they were dropped, at most: a thread without a ring draws none.
func (s *Spool) dropped() uint64 {
	records, _, _ := s.Lost()
	return records - s.load64(offLostNoRing)
}
