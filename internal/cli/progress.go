package cli

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/term"

	"memtrace/internal/sanitize"
)

const (
	progressDelay    = time.Second            // shorter work shows nothing
	progressInterval = 100 * time.Millisecond // between two pictures
)

// Progress shows on a terminal how far the reading of a file has come, once that takes longer than progressDelay.
type Progress struct {
	out   *os.File // nil: show nothing
	name  string
	total int64 // bytes, or at most 0 where unknown
	next  time.Time
	bar   *atomic.Pointer[Progress] // who is on the screen
	drawn bool
}

// NewProgress returns the progress of reading a file. It shows nothing if the console is quiet or standard error is not
// a terminal.
func (c *Console) NewProgress(name string, total int64) *Progress {
	p := &Progress{name: sanitize.Text(name), total: total, next: time.Now().Add(progressDelay), bar: c.bar}
	if !c.Quiet && term.IsTerminal(int(c.Stderr.Fd())) {
		p.out = c.Stderr
	}
	return p
}

// Update sets how many bytes have been read. It is cheap enough for every batch of events.
func (p *Progress) Update(read int64) {
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
		fmt.Fprintf(p.out, "\r\x1b[Kreading %s: %3d %%, %.1f of %.1f MiB", p.name, min(100, read*100/p.total),
			float64(read)/mib, float64(p.total)/mib)
		return
	}
	fmt.Fprintf(p.out, "\r\x1b[Kreading %s: %.1f MiB", p.name, float64(read)/mib)
}

// Finish takes the picture away.
func (p *Progress) Finish() {
	if p.drawn {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.bar.Store(nil)
	}
}
