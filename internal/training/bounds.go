package training

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// openIteration is the one that runs.
type openIteration struct {
	report.Iteration
	phases  [momentCount]report.IterationMoment
	held    [momentCount]map[moduleClass]uint64
	counted bool // it was counted before
}

// came adds a block to what stayed, and gone takes one out.
func (o *openIteration) came(s *slot) {
	if o.Stayed != nil {
		*heap.Slot(&o.Stayed, int(s.class)) += s.size
	}
}

func (o *openIteration) gone(s *slot) {
	if o.Stayed != nil {
		o.Stayed[s.class] -= s.size
	}
}

// end closes the iteration that runs.
func (t *Tracker) end(time int64) {
	t.count(false)
	v := t.running(time)
	v.Ended = true
	if t.Requested != nil {
		v.RequestedEnd = t.Requested()
	}
	t.number = v.Number
	t.code.ended()
	if len(t.done) == report.MaxIterations {
		t.leftOut++
	} else {
		t.done = append(t.done, v)
		if v.Peak.Bytes > t.record || t.highest < 0 {
			t.record, t.highest, t.held = v.Peak.Bytes, len(t.done)-1, t.open.held
		}
	}
	t.start(time)
}

// start begins an iteration; what is live is counted.
func (t *Tracker) start(time int64) {
	reserved := t.open.ReservedEndBytes
	t.open = openIteration{Iteration: report.Iteration{StartNS: time, ReservedPeakBytes: reserved,
		ReservedEndBytes: reserved, Stayed: append([]uint64{}, t.before.byClass...)}}
	t.young = nil
}

// Restart forgets the iterations so far, since some of their allocations, and of their ends, were left out of the
// trace. Only the one with the highest peak is kept, as one that did not end: its peak is right, its number is not. The
// others count on in number, with so many more that were left out.
func (t *Tracker) Restart(time int64, more uint64) {
	t.count(false)
	if t.by == report.IterationsByOptimizer {
		t.number += more
	}
	if t.started = false; t.highest >= 0 {
		t.done[t.highest].Ended = false
		t.done, t.highest = t.done[t.highest:t.highest+1:t.highest+1], 0
	}
	t.start(time)
}

// running is the iteration that runs, as it stands.
func (t *Tracker) running(time int64) report.Iteration {
	v := t.open.Iteration
	v.Number, v.Epoch, v.EndNS = t.number+1, t.epoch, time
	if t.by == report.IterationsByStep && t.started {
		v.Number = t.number
	}
	v.Peak = t.open.phases[atPeak]
	for i, to := range map[int]**report.IterationMoment{atForward: &v.Forward, atBackward: &v.Backward,
		atOptimizer: &v.Optimizer} {
		if m := t.open.phases[i]; m.Held != nil {
			*to = &m
		}
	}
	return v
}

// Forget forgets the iterations that ended, and what the open one held so far.
func (t *Tracker) Forget(time int64) {
	t.count(false)
	t.start(time)
	t.done, t.leftOut, t.failed, t.spans, t.code = nil, 0, nil, newSpans(), newCode{}
	t.graphs.forget()
	t.record, t.highest, t.held = 0, -1, [momentCount]map[moduleClass]uint64{}
}
