package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"memtrace/internal/visible"
)

const (
	progressDelay    = time.Second            // shorter work shows nothing
	progressInterval = 100 * time.Millisecond // between two pictures
)

// progress shows on a terminal how far the reading of a file has come, once that takes longer than progressDelay.
type progress struct {
	out   *os.File // nil: show nothing
	name  string
	total int64 // bytes, or at most 0 where unknown
	next  time.Time
	bar   *atomic.Pointer[progress] // who is on the screen
	drawn bool
}

func (a *app) newProgress(name string, total int64) *progress {
	p := &progress{name: visible.Text(name), total: total, next: time.Now().Add(progressDelay), bar: a.bar}
	if !a.quiet && term.IsTerminal(int(a.stderr.Fd())) {
		p.out = a.stderr
	}
	return p
}

// update tells how many bytes have been read. It is cheap enough for every batch of events.
func (p *progress) update(read int64) {
	if p.out == nil || time.Now().Before(p.next) {
		return
	}
	p.next = time.Now().Add(progressInterval)
	if !p.drawn && !p.bar.CompareAndSwap(nil, p) { // another trace's: perhaps later
		return
	}
	p.drawn = true
	const mib = 1 << 20
	if p.total > 0 {
		fmt.Fprintf(p.out, "\r\x1b[Kreading %s: %3d %%, %.1f of %.1f MiB", p.name, min(100, read*100/p.total), float64(read)/mib, float64(p.total)/mib)
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[Kreading %s: %.1f MiB", p.name, float64(read)/mib)
}

// finish takes the picture away.
func (p *progress) finish() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.bar.Store(nil)
	}
}
