package main

import (
	"io"

	"memtrace/trace"
)

// eventFilter is a Source that passes on a part of another one's events.
type eventFilter struct {
	trace.Source
	from, to uint64                   // order numbers, both included
	kinds    map[trace.EventKind]bool // nil: all
	left     int64                    // events still to pass on; negative: no limit

	kept []trace.Event // reused
}

// ReadBatch returns the next events that pass, valid until the next call.
func (f *eventFilter) ReadBatch() ([]trace.Event, error) {
	for f.left != 0 {
		batch, err := f.Source.ReadBatch()
		if err != nil {
			return nil, err
		}
		f.kept = f.kept[:0]
		for i := range batch {
			if f.left != 0 && f.passes(&batch[i]) {
				f.kept = append(f.kept, batch[i])
				f.left--
			}
		}
		if len(f.kept) > 0 {
			return f.kept, nil
		}
	}
	return nil, io.EOF
}

func (f *eventFilter) passes(e *trace.Event) bool {
	return e.Seq >= f.from && e.Seq <= f.to && (f.kinds == nil || f.kinds[e.Kind])
}
