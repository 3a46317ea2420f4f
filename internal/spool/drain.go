package spool

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0 // FUTEX_WAIT: shared, since the recorder maps the same file elsewhere
	futexWake = 1
)

// StopRequested reports whether the process is ending and waits for the last flush.
func (s *Spool) StopRequested() bool { return s.data.load32(offControl) == controlStopRequested }

// SetDraining publishes to the recorder that its drainer runs, or (failed) that it will not come back.
func (s *Spool) SetDraining(failed bool) {
	state := uint32(drainRunning)
	if failed {
		state = drainFailed
	}
	atomic.StoreUint32(s.data.word32(offDrainState), state)
	if failed {
		s.futex(offControl, futexWake, 1, nil)
	}
}

// Drained publishes to the ending process that everything is in the trace file.
func (s *Spool) Drained() {
	atomic.StoreUint32(s.data.word32(offControl), controlDrained)
	s.futex(offControl, futexWake, 1<<30, nil)
}

// Wait sleeps for d, or until the recorder has begun that many more segments (16 KiB each); fewer where not so many are
// left.
func (s *Spool) Wait(d time.Duration, segments uint32) {
	wake := s.data.load32(offDrainWake)
	atomic.StoreUint32(s.data.word32(offDrainWakeAt), s.wakeAt(segments))
	if !s.StopRequested() {
		timeout := unix.NsecToTimespec(d.Nanoseconds())
		s.futex(offDrainWake, futexWait, wake, &timeout)
	}
	atomic.StoreUint32(s.data.word32(offDrainWakeAt), 0)
}

// wakeAt is how many segments are in use when more of them have been begun. Most of what is in use was read already,
// and waits for the trace to be written.
func (s *Spool) wakeAt(more uint32) uint32 {
	used := s.data.load32(offSegmentsUsed) - s.data.load32(offSegmentsFree)
	left := s.data.load32(offSegmentsMax) - used
	return used + max(1, min(more, left/2))
}

func (s *Spool) futex(off uint64, operation, value uint32, timeout *unix.Timespec) {
	// The result does not matter: a wake-up for any reason only makes the caller look.
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(s.data.word32(off))), uintptr(operation), uintptr(value),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
}
