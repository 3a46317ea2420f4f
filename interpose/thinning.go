package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"memtrace/internal/rewrite"
	"memtrace/internal/safefile"
	"memtrace/trace"
)

// thinning is one copy under way. Its goroutine and the drainer use it by turns: the drainer while the goroutine does
// not run.
type thinning struct {
	path    string   // of the copy
	source  *os.File // the trace, to read
	file    *os.File // the copy
	writer  *trace.Writer
	reader  *throttledReader
	copier  *rewrite.Copier
	running bool
	ran     chan error
}

// newThinning begins a copy of the trace at path, which has so many bytes, in a goroutine.
func newThinning(path string, own safefile.Identity, size int64, o rewrite.CopyOptions) (_ *thinning, err error) {
	t := &thinning{path: path + ".thinning", ran: make(chan error, 1)}
	defer func() {
		if err != nil {
			t.abandon()
		}
	}()
	if t.source, err = safefile.OpenToWrite(path, os.O_RDONLY, own); err != nil {
		return nil, err
	}
	if t.file, err = os.OpenFile(t.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	if t.writer, err = trace.NewWriter(t.file, trace.WriterOptions{}); err != nil {
		return nil, err
	}
	reader, err := trace.NewReader(io.NewSectionReader(t.source, 0, size), size)
	if err != nil {
		return nil, err
	}
	t.reader = &throttledReader{Reader: reader}
	if t.copier, err = rewrite.NewCopier(t.writer, t.reader, o); err != nil {
		return nil, err
	}
	t.start()
	return t, nil
}

func (t *thinning) start() {
	t.running = true
	go t.run()
}

// resume lets the goroutine copy what the trace has by now.
func (t *thinning) resume(size int64) {
	t.reader.Continue(io.NewSectionReader(t.source, t.reader.Offset(), size-t.reader.Offset()), size)
	t.start()
}

func (t *thinning) run() {
	defer func() {
		if fault := recover(); fault != nil {
			t.ran <- fmt.Errorf("internal fault: %v", fault)
		}
	}()
	err := t.copier.Run()
	if h := t.reader.Health(); err == nil && h.Truncated {
		err = fmt.Errorf("at offset %d: %s", h.TruncatedAt, h.Reason)
	}
	t.ran <- err
}

// done reports whether the goroutine has finished its input, and its error.
func (t *thinning) done() (done bool, err error) {
	select {
	case err := <-t.ran:
		t.running = false
		return true, err
	default:
		return false, nil
	}
}

// wait waits for that.
func (t *thinning) wait() error {
	err := <-t.ran
	t.running = false
	return err
}

// abandon ends the copying and takes the copy away.
func (t *thinning) abandon() {
	t.end()
	if t.file != nil {
		t.file.Close()
		os.Remove(t.path)
	}
}

// end releases what the copying needed. A goroutine that runs is stopped: its next read fails.
func (t *thinning) end() {
	if t.source != nil {
		t.source.Close()
	}
	if t.running {
		_ = t.wait() // why it failed is known
	}
	if t.copier != nil {
		t.copier.Close()
	}
}

// throttledReader is a Reader that sleeps half of the time, so that other threads can run.
type throttledReader struct {
	*trace.Reader
	hurry  atomic.Bool
	rested time.Time
}

// rest is how long it reads before it sleeps as long.
const rest = 5 * time.Millisecond

// ReadBatch implements trace.Source.
func (u *throttledReader) ReadBatch() ([]trace.Event, error) {
	if !u.hurry.Load() && time.Since(u.rested) > rest {
		time.Sleep(rest)
		u.rested = time.Now()
	}
	return u.Reader.ReadBatch()
}
