package analyzer

import (
	"fmt"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/moment"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// Watches implements oom.Replay.
func (c *collector) Watches(device int16) bool { return c.filter.HasDevice(device) }

// DriverBytes implements oom.Replay.
func (c *collector) DriverBytes() uint64 { return c.details[heap.AccountDriver].Total.Current }

// LostRecords implements oom.Replay.
func (c *collector) LostRecords() uint64 { return c.lost }

// CategoryOf implements oom.Replay.
func (c *collector) CategoryOf(id uint32, b *heap.Block) string {
	switch {
	case b.Hidden:
		return ""
	case c.iterations == nil && !c.ooms.Places: // nobody asked for names of call stacks
		return ""
	case c.iterations == nil || c.iterations.Account != b.Account:
		return c.ooms.ByPhase.Of(&c.resolver, c.originOf(id, b).Category, b)
	}
	return c.iterations.CategoryOf(&c.details[b.Account].Cells.List[c.cellNumber(id)])
}

// AtRefusal implements oom.Replay. It costs a look at all that is live, so it is done only where that may be the moment
// that was asked for.
func (c *collector) AtRefusal(time int64) any {
	if c.want.Kind != moment.OOM || c.moment != nil {
		return nil
	}
	return c.now(time)
}

// OOMEnded implements oom.Replay.
func (c *collector) OOMEnded(number int, outcome string, state any) {
	if m, taken := state.(*moment.State); taken && (c.want.OOM == number || c.want.OOM == 0 && c.moment == nil &&
		outcome == report.OOMFailed) {
		c.moment = m
	}
}

// finishOOMForNow ends every OOM event as if nothing more came, and returns what takes that back: a trace that grows
// may say more.
func (c *collector) finishOOMForNow() (undo func()) {
	kept, undoEvents := c.moment, c.ooms.FinishForNow()
	return func() {
		undoEvents()
		c.moment = kept
	}
}

// noOOM says why there is no such moment.
func (c *collector) noOOM(want moment.At) error {
	count := c.ooms.Number()
	if count == 0 {
		return fmt.Errorf("the trace has no moment %s: memory never ran out", want)
	}
	if want.OOM == 0 {
		return fmt.Errorf(
			"the trace has no moment %s: memory ran out %d times, but the program got it in the end; choose oom:1 to oom:%d", want, count, count)
	}
	return fmt.Errorf("the trace has no moment %s: memory ran out %d times, so oom:%d is the last", want, count, count)
}

// refusals find out which refusals the moments of a window are, while the trace is read ahead: whether a refusal was
// the end of the matter is told by what comes behind it.
type refusals struct {
	*collector
	now  uint64       // order number of the event
	ends []*moment.At // of the window, those that are refusals
}

// AtRefusal implements oom.Replay.
func (r *refusals) AtRefusal(int64) any { return r.now }

// OOMEnded implements oom.Replay.
func (r *refusals) OOMEnded(number int, outcome string, state any) {
	for _, at := range r.ends {
		if seq, known := state.(uint64); known && at.Seq == 0 &&
			(at.OOM == number || at.OOM == 0 && outcome == report.OOMFailed) {
			at.Seq = seq
		}
	}
}

// refusalSource replays what is read of a source.
type refusalSource struct {
	trace.Source
	refusals
}

// ReadBatch implements trace.Source.
func (s *refusalSource) ReadBatch() ([]trace.Event, error) {
	events, err := s.Source.ReadBatch()
	for i := range events {
		s.now = events[i].Seq
		s.event(&events[i])
	}
	if err != nil {
		s.ooms.Finish()
	}
	return events, err
}

// findRefusals returns a source with the events of another one, whose reading finds the refusals that a window begins
// or ends with.
func (c *collector) findRefusals(src trace.Source) trace.Source {
	s := &refusalSource{Source: src}
	if c.window != nil {
		for _, at := range []*moment.At{&c.window.from, &c.window.to} {
			if at.Kind == moment.OOM {
				s.ends = append(s.ends, at)
			}
		}
	}
	if len(s.ends) == 0 {
		return src
	}
	s.collector = newCollector(src.Tables(), nil, c.filter, moment.At{})
	s.collector.ooms.Replay = &s.refusals
	return s
}
