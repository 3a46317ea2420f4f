package analyzer

import (
	"errors"

	"memtrace/internal/moment"
	"memtrace/internal/training"
	"memtrace/trace"
)

// ErrKeyframes says that an answer could not be had by way of keyframes: the trace is to be read from its beginning,
// without Options.Keyframes.
var ErrKeyframes = errors.New("the trace is to be read from its beginning")

// beginning is where a replay begins that need not begin at the beginning.
type beginning struct {
	src   trace.Keyframed
	list  *trace.Keyframes
	place *trace.KeyframePlace // nil: the beginning
	state *trace.Keyframe      // of place, until it is restored
	left  bool
}

// fromKeyframe returns nil where everything is to be read.
func (o *Options) fromKeyframe(src trace.Source, w *window) *beginning {
	framed, ok := src.(trace.Keyframed)
	if !o.Keyframes || !ok || !o.keyframesDo(w) {
		return nil
	}
	if o.NeedsAhead() {
		if _, ok := o.Ahead.(trace.Keyframed); !ok {
			return nil
		}
	}
	b := &beginning{src: framed, list: framed.Keyframes()}
	if b.list == nil || !b.find(w) {
		return nil
	}
	if b.place != nil {
		state, err := b.list.Read(b.place)
		if err != nil {
			return nil
		}
		b.state = state
	}
	framed.Enter(b.list, b.place)
	return b
}

// keyframesDo reports whether a question is one whose answer depends on the window alone and on what keyframes hold.
func (o *Options) keyframesDo(w *window) bool {
	if w == nil || w.from.IsZero() || o.Timeline != "" || o.HistoryBlocks > 0 {
		return false
	}
	selection := o.selection()
	if len(selection.Words()) > 0 {
		return false
	}
	for i, at := range []moment.At{o.At, w.from, w.to} {
		switch at.Kind {
		case moment.None, moment.Time, moment.Mark, moment.Step:
		case moment.Peak, moment.Exit:
			if i > 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// find chooses the last keyframe before the window; ok is false where that cannot be told.
func (b *beginning) find(w *window) (ok bool) {
	before, known := b.eventsBefore(&w.from)
	if !known {
		return false
	}
	for i := range b.list.Places {
		p := &b.list.Places[i]
		late := w.from.Kind == moment.Time && p.Time > w.from.Time || w.to.Kind == moment.Time && p.Time > w.to.Time
		if late || p.Events > before {
			break
		}
		b.place = p
	}
	return true
}

// eventsBefore returns how many events come before the first mark or step of a moment.
func (b *beginning) eventsBefore(at *moment.At) (n uint64, known bool) {
	s := &b.list.Closing.State
	switch at.Kind {
	case moment.Mark:
		t := s.Table("replay.marks")
		t.Next()
		for t.More() {
			if name, before := t.Text(), t.Next(); name == at.Name && (!known || before < n) {
				n, known = before, true
			}
		}
		return n, known && s.Failed() == ""
	case moment.Step:
		t := s.Table("replay.steps")
		t.Next()
		for t.More() {
			if number, before := t.Next(), t.Next(); number == at.Step {
				n, known = before, true
			}
		}
		return n, known && s.Failed() == ""
	}
	return 1<<64 - 1, true
}

// step restores the state before the first events, and leaves once the window has ended.
func (b *beginning) step(r *replayer) error {
	if state := b.state; state != nil {
		b.state = nil
		if err := r.restore(state); err != nil {
			return errors.Join(ErrKeyframes, err)
		}
	}
	if r.window.ended && !b.left {
		b.left = true
		b.src.Leave()
		r.lastTime = max(r.lastTime, b.list.Closing.State.Table("replay.end").Signed())
	}
	return nil
}

// readAhead is training.ReadAhead for a replay that begins at a keyframe: of the trace it reads what the window needs.
func (b *beginning) readAhead(src trace.Source, w *window) (*training.Lookahead, error) {
	s := &stretch{Source: src, framed: src.(trace.Keyframed), window: window{from: w.from, to: w.to}}
	if s.list = s.framed.Keyframes(); s.list == nil {
		return nil, ErrKeyframes
	}
	closing := &s.list.Closing.State
	end := closing.Table("replay.end")
	if end.Signed(); !end.Bool() {
		return nil, ErrKeyframes
	}
	known := training.RestoreLookahead(closing, src.Tables())
	var begin *trace.Keyframe
	if b.place != nil {
		var err error
		if begin, err = s.list.Read(b.place); err != nil {
			return nil, errors.Join(ErrKeyframes, err)
		}
	}
	s.framed.Enter(s.list, b.place)
	if err := known.ReadStretch(begin, s, s.end); err != nil {
		return nil, errors.Join(ErrKeyframes, err)
	}
	if closing.Failed() != "" || begin != nil && begin.State.Failed() != "" {
		return nil, ErrKeyframes
	}
	return known, nil
}

// stretch is a source up to the first keyframe behind a window. It reads to the end of the dictionary all the same.
type stretch struct {
	trace.Source
	framed trace.Keyframed
	list   *trace.Keyframes
	window
	endedAt int64 // offset of the block with which the window ended
	stop    *trace.KeyframePlace
}

// ReadBatch implements trace.Source.
func (s *stretch) ReadBatch() ([]trace.Event, error) {
	for {
		events, err := s.Source.ReadBatch()
		if err != nil {
			return nil, err
		}
		if s.stop == nil && s.ended {
			s.stopBehind(s.framed.BlockOffset())
		}
		if s.stop != nil {
			continue
		}
		for i := range events {
			s.look(&events[i])
		}
		return events, nil
	}
}

func (s *stretch) stopBehind(block int64) {
	for i := range s.list.Places {
		if p := &s.list.Places[i]; p.Offset > s.endedAt && p.Offset == block {
			s.stop = p
			s.framed.Leave()
			return
		}
	}
}

// look notes where the window ends.
func (s *stretch) look(e *trace.Event) {
	begins, ends := s.reaches(e, s.Tables())
	s.began = s.began || begins
	if ends && s.began && !s.ended {
		s.ended, s.endedAt = true, s.framed.BlockOffset()
	}
}

// end reads the keyframe that the stretch ended at.
func (s *stretch) end() (*trace.Keyframe, error) {
	if s.stop == nil {
		return nil, nil
	}
	return s.list.Read(s.stop)
}
