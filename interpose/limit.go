package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"memtrace/internal/rewrite"
	"memtrace/internal/safefile"
	"memtrace/trace"
)

// limiter keeps the trace below MEMTRACE_TRACE_MAX. When the file has a good part of that, what is older is thinned
// (internal/rewrite) into a copy beside it, while the drainer goes on writing; then the copy takes its place. So trace
// and copy together stay below the limit.
type limiter struct {
	most   int64 // bytes
	path   string
	own    safefile.Identity // of the trace
	memory guestMemory
	now    *thinning // nil: none runs
	least  int64     // size from which the next one pays
}

// parseLimit parses what C passes on; empty means none.
func parseLimit(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// newLimiter returns nil where there is no limit.
func newLimiter(set settings) *limiter {
	if set.traceMax <= 0 {
		return nil
	}
	return &limiter{most: set.traceMax, path: set.tracePath, own: set.traceFile, memory: set.memory}
}

// Shares of the limit. The copy has the thinned part, the whole part, and what was recorded meanwhile, which the trace
// has as well; all of it together is below the limit.
const (
	thinFrom  = 3. / 8  // size of the trace from which on it is thinned
	wholePart = 1. / 8  // of its end, which stays whole
	hurryFrom = 7. / 16 // from then on the thinning does not rest any more
	// from then on the drainer waits for it, as long as what is recorded meanwhile fits in the spool
	waitFrom = 1. / 2
)

// waitUpTo is how full the spool may become for that, in terms of its usual size.
const waitUpTo = 4

// thinWindow is how many events are processed together in the traced process.
const thinWindow = 1 << 15

// catchUp is how much of the trace may be left to copy when the drainer stops for it.
const catchUp = 1 << 20

// keepLimit begins a thinning when it is time, and ends one that has caught up.
func (d *drainer) keepLimit() error {
	l := d.limit
	switch {
	case l == nil:
		return nil
	case l.now == nil:
		if d.writer.Offset() < max(l.share(thinFrom), l.least) {
			return nil
		}
		size := d.writer.Offset()
		o := rewrite.CopyOptions{WholeFrom: size - l.share(wholePart), Window: thinWindow, Memory: l.memory.thinning()}
		var err error
		if l.now, err = newThinning(l.path, l.own, size, o); err != nil {
			return d.giveUpLimit(err)
		}
		return nil
	}
	d.holdBack()
	done, err := l.now.done()
	switch {
	case err != nil:
		return d.giveUpLimit(err)
	case !done:
		return nil
	}
	if d.writer.Offset()-l.now.reader.Offset() > catchUp {
		l.now.resume(d.writer.Offset())
		return nil
	}
	return d.replaceTrace()
}

// holdBack keeps the trace from outgrowing its limit while its older part is thinned.
func (d *drainer) holdBack() {
	l := d.limit
	size := d.writer.Offset()
	if size < l.share(hurryFrom) {
		return
	}
	l.now.reader.hurry.Store(true)
	for size >= l.share(waitFrom) && len(l.now.ran) == 0 && d.spool.Pressure() < waitUpTo && !d.spool.StopRequested() {
		time.Sleep(time.Millisecond)
	}
}

// share is a part of the limit, in bytes.
func (l *limiter) share(part float64) int64 { return int64(part * float64(l.most)) }

// giveUpLimit goes on without a limit, and logs it.
func (d *drainer) giveUpLimit(why error) error {
	d.limit.abandon()
	d.limit = nil
	d.log.Error().Msg("MEMTRACE_TRACE_MAX is not kept, the trace goes on growing: " + why.Error())
	return d.writer.WriteInfo(trace.Info{trace.LimitKey: "not kept: " + why.Error()})
}

// replaceTrace copies the rest and puts the copy in the trace's place. What was written so far is whole, so a process
// that is killed meanwhile leaves one or the other.
func (d *drainer) replaceTrace() error {
	if err := d.flush(); err != nil {
		return err
	}
	l, t := d.limit, d.limit.now
	t.reader.hurry.Store(true)
	t.resume(d.writer.Offset())
	err := t.wait()
	if err == nil {
		err = t.copier.HandOver()
	}
	if err == nil {
		err = l.put(t)
	}
	if err != nil {
		return d.giveUpLimit(err)
	}
	d.file.Close()
	before := d.writer.Offset()
	d.file, d.writer = t.file, t.writer
	l.now = nil
	t.end()
	size := d.writer.Offset()
	l.least = size + l.share(1./16)
	d.log.Info().Msgf("the trace was thinned from %d to %d bytes", before, size)
	if size > l.share(thinFrom) {
		d.log.Warn().Msgf(
			"the trace has %d bytes after thinning: what is live and its call stacks take more than MEMTRACE_TRACE_MAX has room for", size)
	}
	return nil
}

// put renames the copy over the trace, if that is still the one that was thinned.
func (l *limiter) put(t *thinning) error {
	st, err := os.Lstat(l.path)
	if err != nil {
		return err
	}
	if safefile.IdentityOf(st) != l.own {
		return fmt.Errorf("%s: %w", l.path, safefile.ErrReplaced)
	}
	fresh, err := t.file.Stat()
	if err != nil {
		return err
	}
	if err := os.Rename(t.path, l.path); err != nil {
		return err
	}
	l.own = safefile.IdentityOf(fresh)
	return nil
}

// abandon ends a thinning that is not needed any more. The trace stays as it is.
func (l *limiter) abandon() {
	if l == nil || l.now == nil {
		return
	}
	l.now.abandon()
	l.now = nil
}
