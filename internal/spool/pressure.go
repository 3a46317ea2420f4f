package spool

import (
	"strconv"
	"sync/atomic"

	"memtrace/trace"
)

// Keys of a recording's facts about the spool's size.
const (
	peakBytesKey = "spool.peak_bytes"   // disk space of the records' part at its greatest
	waitsKey     = "overflow.waits"     // records that threads waited for
	waitedKey    = "overflow.waited_ns" // time during which a thread waited
)

// Pressure is how full the spool is: segments in use, to those that it was made with. Beyond 1 it has grown.
func (s *Spool) Pressure() float64 {
	used, free, first := s.data.load32(offSegmentsUsed), s.data.load32(offSegmentsFree), s.data.u32(offSegmentsFirst)
	if used <= free || first == 0 {
		return 0
	}
	return float64(used-free) / float64(first)
}

// Waiting reports whether threads of the program wait for space.
func (s *Spool) Waiting() bool { return s.data.load32(offWaiting) > 0 }

// wakeWaiting lets as many of them go on as there are free segments.
func (s *Spool) wakeWaiting() {
	if s.Waiting() {
		atomic.AddUint32(s.data.word32(offRoom), 1)
		s.futex(offRoom, futexWake, max(s.data.load32(offSegmentsFree), 1), nil)
	}
}

// roomInfo returns what the recording needed, for its info: only what was unusual.
func (s *Spool) roomInfo(info trace.Info) {
	if used := s.data.load32(offSegmentsUsed); used > s.data.u32(offSegmentsFirst) {
		info[peakBytesKey] = strconv.FormatUint(uint64(used)*segmentSize, 10)
	}
	if waits := s.data.load64(offWaits); waits > 0 {
		info[waitsKey] = strconv.FormatUint(waits, 10)
		info[waitedKey] = strconv.FormatUint(s.data.load64(offWaitedNS), 10)
	}
}
