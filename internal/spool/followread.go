package spool

import (
	"errors"
	"io"
	"slices"

	"memtrace/trace"
)

// ReadBatch implements trace.Source.
func (f *Follower) ReadBatch() ([]trace.Event, error) {
	b, err := f.ReadColumns()
	if err != nil {
		return nil, err
	}
	return b.Rows(), nil
}

// ReadColumns implements trace.ColumnSource. Records of the spool come as rows, and so does what needs a closer look.
func (f *Follower) ReadColumns() (*trace.Batch, error) {
	for f.reader != nil && !f.atSpool {
		b, err := f.reader.ReadColumns()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if f.spool == nil || f.follows(b) {
			return b, nil
		}
		if events := f.skipReturned(b.Rows(), false); len(events) > 0 {
			return trace.RowBatch(events), nil
		}
	}
	f.atSpool = true
	top, _ := f.have.Max()
	if f.reader != nil {
		top = max(top, f.reader.Watermark())
	}
	events := f.skipReturned(f.pending, true)
	f.pending = f.pending[:0]
	if lost, at, ok := f.losses.unreported(top, events); ok {
		events = slices.Insert(events, at, lost)
		f.events++
	}
	if len(events) == 0 {
		return nil, io.EOF
	}
	return trace.RowBatch(events), nil
}

// follows enters events whose numbers go on without a hole above all that were returned, as nearly all in a file do, at
// once. It returns false, and does nothing, where they are not like that.
func (f *Follower) follows(b *trace.Batch) bool {
	first, dense := b.Dense()
	if top, ok := f.have.Max(); !dense || ok && first <= top {
		return false
	}
	f.have.AddRange(first, first+uint64(b.Len())-1)
	f.events += uint64(b.Len())
	return true
}

// skipReturned keeps what was not returned before, in place, and flags what comes after higher numbers or, from the
// spool, below the file's watermark.
func (f *Follower) skipReturned(events []trace.Event, fromSpool bool) []trace.Event {
	top, _ := f.have.Max()
	if fromSpool && f.reader != nil {
		top = max(top, f.reader.Watermark())
	}
	n := 0
	for i := range events {
		e := &events[i]
		// the drainer's account of losses bears another event's number; in a spool it is damage
		if e.Kind != trace.EventLost || fromSpool {
			if !f.have.Add(e.Seq) {
				continue
			}
			if e.Seq < top {
				e.Flags |= trace.FlagLate
			}
			top = max(top, e.Seq)
		} else if !f.losses.correct(e) {
			continue
		}
		if e.Flags&trace.FlagLate != 0 {
			f.late++
		}
		if n != i {
			events[n] = *e
		}
		n++
	}
	f.events += uint64(n)
	return events[:n]
}
