package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// Run is one process's recording. One Run serves one goroutine.
type Run interface {
	trace.Source
	io.Closer
}

// Open opens the recording at path: a trace, continued by what a killed or running process has in the spool beside it,
// or a spool alone. Besides the system's errors it returns trace.ErrNotTrace, trace.ErrVersion and trace.ErrEmpty,
// wrapped with the path. The caller closes the Run.
func Open(path string) (Run, error) {
	run, err := spool.OpenRun(path)
	if err != nil {
		return nil, err
	}
	return run, nil
}

// offsetter is a source that knows how many bytes it has read.
type offsetter interface{ Offset() int64 }

// replay replays what a source has until its end.
func (r *replayer) replay(src trace.Source, progress func(int64)) error {
	r.ooms.Info = src.Info
	for {
		err := r.next(src)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if progress != nil {
			progress(bytesRead(src))
		}
	}
}

// next replays the next events of a source, column by column where it has columns.
func (r *replayer) next(src trace.Source) error {
	if columns, ok := src.(trace.ColumnSource); ok {
		b, err := columns.ReadColumns()
		if entered := r.enter(src); entered != nil {
			return entered
		}
		if err == nil {
			r.batch(b)
		}
		return err
	}
	events, err := src.ReadBatch()
	if entered := r.enter(src); entered != nil {
		return entered
	}
	r.rows(events)
	return err
}

// enter comes before the events of every batch.
func (r *replayer) enter(src trace.Source) error {
	if err := r.goOn(src); err != nil {
		return err
	}
	r.enterPart(src.Info())
	if r.begin == nil {
		return nil
	}
	return r.begin.step(r)
}

func bytesRead(src trace.Source) int64 {
	if o, ok := src.(offsetter); ok {
		return o.Offset()
	}
	return src.Health().Bytes
}

// enterPart notices where a thinned part begins and ends. Bytes are right in it at the moments that count; what is told
// from how memory comes and goes is told from the rest alone.
func (r *replayer) enterPart(info trace.Info) {
	thin := trace.IsThin(info)
	if thin == r.accounts.thin {
		return
	}
	r.accounts.thin, r.device.Holdings.Unchecked = thin, thin
	if r.accounts.held != nil {
		r.accounts.held.Pause(thin)
	}
	if r.accounts.iterations != nil && !thin {
		left := trace.ThinnedFrom(info)
		r.accounts.iterations.Restart(left.UntilTime, left.OptimizerSteps)
	}
}
