package spool

import "runtime"

// pair holds the clocks' values at one moment.
type pair struct {
	ticks     uint64
	monotonic int64 // ns
	realtime  int64 // ns since 1970
}

// clock turns ticks into nanoseconds since the first pair. It is anchored at the latest pair, whose error is tens of
// nanoseconds, and takes the rate from the whole distance between the two.
type clock struct {
	first, last pair
	rate        float64 // ns per tick
}

func (s *Spool) readPair(off uint64) pair {
	return pair{s.data.load64(off), int64(s.data.load64(off + 8)), int64(s.data.load64(off + 16))}
}

// readClock reads both pairs; the recorder makes the version odd while it writes the second.
func (s *Spool) readClock() clock {
	c := clock{first: s.readPair(offClockFirst), rate: 1}
	for range 1000 { // a recorder killed while writing leaves it odd for ever: the pair it was writing is then not used
		before := s.data.load32(offClockVersion)
		c.last = s.readPair(offClockLast)
		if before&1 == 0 && s.data.load32(offClockVersion) == before {
			break
		}
		c.last = c.first
		runtime.Gosched()
	}
	ticks, ns := int64(c.last.ticks-c.first.ticks), c.last.monotonic-c.first.monotonic
	switch {
	case s.data.u32(offClockIsTSC) == 0:
	case ticks > 0 && ns > 0:
		c.rate = float64(ns) / float64(ticks)
	default:
		c.rate = 0.4 // no second pair: any modern counter runs at 2-3 GHz
	}
	return c
}

// time converts ticks to nanoseconds since the first pair.
func (c *clock) time(ticks uint64) int64 {
	return c.last.monotonic - c.first.monotonic + int64(float64(int64(ticks-c.last.ticks))*c.rate)
}
