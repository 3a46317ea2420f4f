package tables

import (
	"cmp"
	"slices"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Detail is an analyzer.Watcher that writes a rank's blocks and events while its trace is read once more.
type Detail struct {
	w     *Writer
	rank  *Rank
	names trace.Source
	steps []report.Iteration
	now   int // the iteration of the last event
	live  [heap.AccountCount]int64
	tags  map[trace.StringID]string
}

// Detail returns what to follow a rank's trace with. names is the trace, read to its end or as far as its events are.
func (w *Writer) Detail(r *Rank, names trace.Source) *Detail {
	d := &Detail{w: w, rank: r, names: names, tags: make(map[trace.StringID]string)}
	if t := r.summary.Training; t != nil && t.IterationsBy != report.IterationsByNothing {
		d.steps = t.Iterations
	}
	return d
}

// levelOf is the level of an account that the tables have blocks of; "" for the others.
func levelOf(a heap.Account) string {
	switch a {
	case heap.AccountFramework:
		return report.LevelFramework
	case heap.AccountDriver:
		return report.LevelDriver
	}
	return ""
}

// stack is the id of a block's stack.
func (d *Detail) stack(b *heap.Block) int64 {
	return d.rank.stacks[callstack.Pair{Native: b.Stack, Python: b.PyStack}.ID()]
}

// stepAt is the number of the iteration at a time; 0 without iterations.
func (d *Detail) stepAt(time int64) int64 {
	if len(d.steps) == 0 {
		return 0
	}
	i, _ := slices.BinarySearchFunc(d.steps, time, func(it report.Iteration, time int64) int {
		return cmp.Compare(it.EndNS, time)
	})
	return int64(d.steps[min(i, len(d.steps)-1)].Number)
}

// stepNow is stepAt for times that ascend but for those of threads that overtake each other.
func (d *Detail) stepNow(time int64) int64 {
	if len(d.steps) == 0 {
		return 0
	}
	for d.now+1 < len(d.steps) && d.steps[d.now].EndNS < time {
		d.now++
	}
	return int64(d.steps[d.now].Number)
}

// Opened implements analyzer.Watcher.
func (d *Detail) Opened(_ uint32, b *heap.Block, e *trace.Event) {
	d.event(b, e.Time, e.Thread, true)
}

// Closed implements analyzer.Watcher.
func (d *Detail) Closed(_ uint32, b *heap.Block, e *trace.Event) {
	d.event(b, e.Time, e.Thread, false)
	d.block(b, &e.Time)
}

// Passed implements analyzer.Watcher. The block's end is known to have come before; when exactly is not.
func (d *Detail) Passed(b *heap.Block) {
	d.event(b, b.Time, b.Thread, true)
	d.event(b, b.Time, b.Thread, false)
	d.block(b, &b.Time)
}

// Event implements analyzer.Watcher.
func (d *Detail) Event(*trace.Event) {}

// Moment implements analyzer.Watcher.
func (d *Detail) Moment() any { return nil }

// End writes what was never freed, and returns the first error of a write.
func (d *Detail) End(f *analyzer.Followed) error {
	var left []heap.Block
	f.Live(func(b *heap.Block) { left = append(left, *b) })
	slices.SortFunc(left, func(a, b heap.Block) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range left {
		d.block(&left[i], nil)
	}
	return cmp.Or(d.w.blocks.failed(), d.w.events.failed())
}

func (d *Detail) event(b *heap.Block, time int64, thread trace.ThreadID, alloc bool) {
	level := levelOf(b.Account)
	if level == "" || d.w.events == nil {
		return
	}
	live := &d.live[b.Account]
	if alloc {
		*live += int64(b.Size)
	} else {
		*live -= int64(b.Size)
	}
	d.w.events.add(Event{Rank: d.rank.number, Time: time, Alloc: alloc, Level: level, Device: int32(b.Device),
		Thread: int32(thread), Address: int64(b.Addr), Bytes: int64(b.Size), Stack: d.stack(b),
		Step: d.stepNow(time), Live: *live})
}

func (d *Detail) block(b *heap.Block, end *int64) {
	level := levelOf(b.Account)
	if level == "" || d.w.blocks == nil {
		return
	}
	row := Block{Rank: d.rank.number, Level: level, Device: int32(b.Device), Start: b.Time, Address: int64(b.Addr),
		Bytes: int64(b.Size), Stack: d.stack(b), Tag: d.tag(b.Tag), Thread: int32(b.Thread), Step: d.stepAt(b.Time)}
	if end != nil {
		row.End = new(*end)
	}
	d.w.blocks.add(row)
}

func (d *Detail) tag(id trace.StringID) string {
	tag, known := d.tags[id]
	if !known {
		tag = text(cmp.Or(d.names.Tables().String(id), report.Untagged))
		d.tags[id] = tag
	}
	return tag
}
