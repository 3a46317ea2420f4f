package main

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// pace is the drainer's scheduling priority among the program's threads. It is below theirs (cshim/process/boot.c),
// which costs the program least, as long as it keeps up all the same. Where the program keeps every processor busy,
// what it records piles up in the spool: then the drainer takes its share as any other thread, and a better one where
// it may.
type pace int

const (
	paceBehind pace = iota // below the program's threads
	paceEqual              // as one of them
	paceAhead              // before them
)

// How full a spool must be for each pace, and below which the pace ends.
const (
	equalFrom  = 1. / 4
	aheadFrom  = 1. / 2
	behindFrom = 1. / 16
)

// fullBacklog is how many records a drainer takes some 60 ms for: as long as that, a process would live on after its
// last event. A spool that holds so many counts as full, however much space is left.
const fullBacklog = 1 << 18

// aheadNice is by how much the drainer's thread lowers its nice value; most processes may not.
const aheadNice = 20

// paceFor returns the pace for a spool that is so full (spool.Pressure).
func (p pace) paceFor(full float64) pace {
	switch {
	case full >= aheadFrom:
		return paceAhead
	case full >= equalFrom:
		return max(p, paceEqual)
	case full < behindFrom:
		return paceBehind
	}
	return p
}

// pacer sets the priority of one thread: the one that ran newPacer, whose priority C lowered.
type pacer struct {
	now  pace
	nice int32 // the program's
	off  bool  // the place stays as it is
}

// newPacer binds the calling goroutine to its thread.
func newPacer() *pacer {
	runtime.LockOSThread()
	p := &pacer{off: filtered()} // a filter may end the process over such a call
	if p.off {
		return p
	}
	attr, err := unix.SchedGetAttr(0, 0)
	if p.off = err != nil || attr.Policy != unix.SCHED_BATCH; !p.off {
		p.nice = attr.Nice
	}
	return p
}

// keep sets the priority that fits how full the spool is.
func (p *pacer) keep(full float64) {
	want := p.now.paceFor(full)
	if want == p.now || p.off {
		return
	}
	p.now = want
	if p.off = filtered(); p.off { // the program's own, by now
		return
	}
	switch want {
	case paceBehind:
		p.place(unix.SCHED_BATCH, p.nice)
	case paceEqual:
		p.place(unix.SCHED_NORMAL, p.nice)
	case paceAhead:
		if p.place(unix.SCHED_NORMAL, max(p.nice-aheadNice, -20)) != nil {
			p.place(unix.SCHED_NORMAL, p.nice)
		}
	}
}

func (p *pacer) place(policy uint32, nice int32) error {
	return unix.SchedSetAttr(0, &unix.SchedAttr{Policy: policy, Nice: nice}, 0)
}
