package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// refusals find out which refusals the moments of a window are, while the trace is read ahead: whether a refusal was
// the end of the matter is told by what comes behind it.
type refusals struct {
	*oomFigure
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
	replayer *replayer
	refusals
}

// ReadBatch implements trace.Source.
func (s *refusalSource) ReadBatch() ([]trace.Event, error) {
	events, err := s.Source.ReadBatch()
	for i := range events {
		s.now = events[i].Seq
		s.replayer.event(&events[i])
	}
	if err != nil {
		s.Finish()
	}
	return events, err
}

// findRefusals returns a source with the events of another one, whose reading finds the refusals that a window begins
// or ends with; w may be nil. free releases its memory once it was read.
func (w *window) findRefusals(src trace.Source, f *profile.Filter) (found trace.Source, free func()) {
	s := &refusalSource{Source: src}
	if w != nil {
		for _, at := range []*moment.At{&w.from, &w.to} {
			if at.Kind == moment.OOM {
				s.ends = append(s.ends, at)
			}
		}
	}
	if len(s.ends) == 0 {
		return src, func() {}
	}
	s.replayer = newReplayer(src.Tables(), nil, f, &Options{}, nil)
	s.oomFigure = &s.replayer.ooms
	s.Replay = &s.refusals
	return s, s.replayer.accounts.room.Free
}
