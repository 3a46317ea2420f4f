package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/render/layout"
	"memtrace/trace"
)

// Snapshot writes a memory snapshot as torch.cuda.memory._dump_snapshot does, for PyTorch's memory_viz: the segments
// and blocks at the moment of Count.At, the end of the run if it names none, and the history until then, of which the
// latest Count.HistoryBlocks events are kept. Driver memory that the framework's allocator does not hold has separate
// segments and blocks, identified by a key (foreignKey). Readers reconstruct the history backwards from the state at
// its end, so nothing after the moment is written. The trace is read twice if the moment is not its end.
func Snapshot(w io.Writer, run *Run, o Options) (*Written, error) {
	limit := run.Count.HistoryBlocks
	count := run.Count
	count.RuleSets, count.HistoryBlocks = nil, 0
	last := uint64(wholeRun)
	if at := count.At.String(); at != "" && at != "exit" {
		var err error
		if last, err = lastChange(run, count); err != nil {
			return nil, err
		}
		count.At = moment.At{}
	}
	var watch *snapshotWatch
	followed, err := run.followed(count, func(names trace.Source) analyzer.Watcher {
		watch = newSnapshotWatch(names, limit, last)
		return watch
	})
	if err != nil {
		return nil, err
	}
	defer followed.Close()
	out := bufio.NewWriterSize(w, 1<<16)
	file := newSnapshotFile(out, watch, followed, &o)
	file.write()
	if err := out.Flush(); err != nil {
		return nil, fmt.Errorf("write the snapshot: %w", err)
	}
	return watch.written(followed.Summary, run.Count.At.String()), nil
}

// written describes the content of a snapshot.
func (w *snapshotWatch) written(s *report.Summary, moment string) *Written {
	if moment == "" {
		moment = "the end"
	}
	bytes := w.live[heap.AccountFramework]
	if s.Framework.Empty() {
		bytes = w.live[heap.AccountDriver]
	}
	v := &Written{Summary: s, Words: amount(bytes, moment, 0)}
	if w.forgotten > 0 {
		v.Limits = append(v.Limits,
			fmt.Sprintf(
				"the history begins late: %s older events are left out (--limit holds more; the state before them is there)", layout.Count(w.forgotten)))
	}
	if slices.ContainsFunc([]string{"managed", "host", "registered", "foreign", "other"},
		func(account string) bool { return s.Other[account].AllocCount > 0 }) {
		v.Limits = append(v.Limits,
			"managed, pinned and other memory that does not occupy the device is left out: a snapshot has no place for it")
	}
	return v
}

// changeCounter finds the last change of blocks before a moment.
type changeCounter struct {
	watchNothing
	changes uint64
	live    [heap.AccountCount]uint64
	highest [heap.AccountCount]uint64
	peak    [heap.AccountCount]uint64 // changes until the highest
}

// lastChange reads the trace and returns how many changes of blocks, from the first on, precede the moment.
func lastChange(run *Run, o analyzer.Options) (uint64, error) {
	var c changeCounter
	o.Groupings = []string{"tag"}
	f, err := run.followed(o, func(trace.Source) analyzer.Watcher { return &c })
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if n, chosen := f.Moment.(uint64); chosen {
		return n, nil
	}
	if f.Summary.Framework.Empty() {
		return c.peak[heap.AccountDriver], nil
	}
	return c.peak[heap.AccountFramework], nil
}

// changes reports whether a block is of the accounts that a snapshot holds.
func changes(b *heap.Block) bool {
	return b.Account == heap.AccountDriver || b.Account == heap.AccountFramework
}

// Opened implements analyzer.Watcher.
func (c *changeCounter) Opened(_ uint32, b *heap.Block, _ *trace.Event) {
	if !changes(b) {
		return
	}
	c.changes++
	if c.live[b.Account] += b.Size; c.live[b.Account] > c.highest[b.Account] {
		c.highest[b.Account], c.peak[b.Account] = c.live[b.Account], c.changes
	}
}

// Closed implements analyzer.Watcher.
func (c *changeCounter) Closed(_ uint32, b *heap.Block, _ *trace.Event) {
	if changes(b) {
		c.changes++
		c.live[b.Account] -= b.Size
	}
}

// Moment implements analyzer.Watcher.
func (c *changeCounter) Moment() any { return c.changes }
