package analyzer

import (
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// maxThreads bounds the threads whose latest block is known; only damaged traces have more.
const maxThreads = 1 << 16

// replayer replays events. It keeps the state that figures are counted from: the live blocks, what the accounts and
// the devices hold, what is certain of it.
type replayer struct {
	heap      *heap.Heap
	accounts  accounts
	device    device.State
	allocator device.AllocatorTracker
	losses    losses
	moments   moments
	window    *window    // nil: the whole run
	begin     *beginning // nil: the beginning of the trace
	figures   figures
	watcher   *watchFigure // nil without one

	launches        launchFigure
	iterationCounts iterationFigure
	marks           markFigure
	samples         sampleFigure
	ooms            oomFigure

	named      heap.Locator
	parameters training.ParameterList
	elements   training.Elements
	idle       idleWatch
	poolStacks map[uint64]bool // call stacks that take driver memory for pools of the program's own

	threads  []uint32 // by thread: the block that its latest memory event opened, plus one; 0: it did something else
	previous uint32   // the same of the thread of the event being replayed, before it
	lastTime int64

	change  change // the one that figures see
	run     frameworkRun
	rowRoom []trace.Event // where events become rows

	bookmark *trace.Keyframe // that the replay goes on from, until it has; nil: none
}

// newReplayer returns a replayer that counts the blocks of retired cells by some groupings. With none and no filter, it
// does not count by origin at all.
func newReplayer(tables *trace.Tables, kept []*profile.Grouping, f *profile.Filter, opts *Options,
	followed *overTime) *replayer {
	r := &replayer{accounts: newAccounts(tables, kept, f), moments: moments{want: opts.At}}
	r.accounts.resolver.Module = r.accounts.module
	r.accounts.reserves = r.reserves
	r.heap = heap.NewHeap(r, r.accounts.room)
	r.losses.replayer = r
	r.ooms.begin(r, opts.Sites)
	r.figures = newFigures(r, opts, followed)
	r.figures.sort()
	return r
}

// reserves reports whether a call stack takes driver memory for an allocator that reports what it cuts out of it, as
// far as is known by then.
func (r *replayer) reserves(stack trace.StackID) bool {
	library := r.accounts.resolver.Libraries.Of(stack)
	return library != callstack.UnknownLibrary && r.device.Holdings.Reports(library)
}

// event replays one event.
func (r *replayer) event(e *trace.Event) {
	if r.window != nil && r.window.skips(r, e) {
		return
	}
	r.moments.before(r, e)
	if r.accounts.iterations != nil {
		r.accounts.iterations.Event(e)
	}
	if r.window != nil && r.window.enters(r, e) {
		return
	}
	if r.losses.begun {
		r.losses.event(e)
	}
	r.apply(e)
	r.idle.look(r, e.Seq, e.Device)
	r.lastTime = max(r.lastTime, e.Time)
	for _, f := range r.figures.events[e.Kind&63] {
		f.event(e)
	}
	if r.window != nil {
		r.window.passed(r, e)
	}
}

// apply does to the heap, the devices and the names what an event does.
func (r *replayer) apply(e *trace.Event) {
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree:
		latest := r.latestOf(e.Thread)
		r.previous, *latest = *latest, 0
		epoch := r.accounts.frameworkEpoch()
		r.heap.Apply(e)
		if e.Level == cuda.LevelFramework && e.Status == 0 && heap.AccountOf(e) == heap.AccountFramework {
			r.report(e, epoch)
		}
		if r.moments.want.Kind == moment.Teardown { // asked first, since events are many
			r.moments.keepIfWanted(r, e)
		}
	case trace.EventMap, trace.EventUnmap, trace.EventCreate, trace.EventDestroy:
		r.heap.Apply(e)
		r.device.Changed(e, r.accounts.resolver.Libraries)
	case trace.EventReserve:
		if e.Flags&trace.FlagLate == 0 || !r.heap.Objects.EndedSince(e) {
			r.device.Sizes.Reserve(e)
		}
	case trace.EventName:
		r.name(e)
	case trace.EventMark, trace.EventStep:
		r.moments.keepIfWanted(r, e)
	case trace.EventLost:
		r.losses.lose(e)
	case trace.EventWait, trace.EventComplete, trace.EventEmptyCache, trace.EventAsk, trace.EventSetting:
		r.allocator.Event(e, profile.DeviceSlot(e.Device), r.accounts.frameworkEpoch(),
			r.accounts.resolver.Tables.String)
	}
}

// report takes in a framework event's counters; epoch is that of the framework's total before the event.
func (r *replayer) report(e *trace.Event, epoch uint64) {
	r.device.Report(e, r.accounts.resolver.Libraries, epoch)
	if r.accounts.iterations != nil {
		r.accounts.iterations.Reserved(e.Device, e.Reserved)
	}
}

// latestOf is where the block is kept that the latest memory event of a thread opened.
func (r *replayer) latestOf(thread trace.ThreadID) *uint32 {
	return heap.Slot(&r.threads, int(min(thread, maxThreads)))
}

// Opened implements heap.Observer.
func (r *replayer) Opened(id uint32, b *heap.Block, e *trace.Event) {
	a := &r.accounts
	b.PyStack, *r.latestOf(e.Thread) = a.links.Stack(e), id+1
	if r.losses.begun && e.Kind == trace.EventMap {
		r.losses.markUncertain(e.Seq) // its size may be that of another mapping
	}
	r.device.Opened(id, b, e.Pool, a.resolver.Libraries, a.frameworkEpoch())
	d := a.details[b.Account]
	var n uint32
	if d == nil {
		b.Hidden = a.filter != nil && a.hides(b, e)
	} else {
		n = a.cell(&d.Cells, b, a.resolver.Places.Of(e.Stream, e.Pool), d.Total.Epoch)
		b.Hidden = d.Cells.List[n].Hidden
	}
	if b.Hidden {
		return
	}
	a.countFlags(e)
	if r.losses.uncertain {
		r.losses.addCertain(b, e, d, n)
	}
	var v *profile.Cell
	if d == nil {
		a.openTotal(b)
	} else {
		a.open(id, b, e.Rest, d, n)
		v = &d.Cells.List[n]
	}
	if len(r.figures.blocks) == 0 {
		return
	}
	r.change = change{id, b, e, d, v, 0}
	for _, f := range r.figures.blocks {
		f.opened(&r.change)
	}
}

// Closed implements heap.Observer.
func (r *replayer) Closed(id uint32, b *heap.Block, e *trace.Event) {
	a := &r.accounts
	r.device.Closed(id, b, a.resolver.Libraries, a.frameworkEpoch())
	if b.Account == heap.AccountDriver {
		r.allocator.Freed(e.Thread, b.Size)
	}
	if b.Hidden {
		return
	}
	if e.Kind == trace.EventDestroy && !b.OfPool() { // the program reports when memory of its own pools ends
		a.implicit[b.Account].Add(b.Size)
	}
	d := a.details[b.Account]
	var v *profile.Cell
	var opened uint64
	if d == nil {
		if r.losses.uncertain {
			r.losses.removeCertain(b, nil, 0)
		}
		a.closeTotal(b, e.Time)
	} else {
		r.endLife(d, id, b, e.Seq, e.Time)
		live := a.live.At(id)
		if r.losses.uncertain {
			r.losses.removeCertain(b, d, live.Cell)
		}
		opened, v = live.Opened, &d.Cells.List[live.Cell]
		if r.window != nil {
			r.window.closed(b, &live.Opened, &v.Origin)
		}
		a.close(id, b, d, e.Time, e.Kind == trace.EventFree && e.Thread == b.Thread && r.previous == id+1)
	}
	if len(r.figures.blocks) == 0 {
		return
	}
	r.change = change{id, b, e, d, v, opened}
	for _, f := range r.figures.blocks {
		f.closed(&r.change)
	}
}

// endLife gives a block that its pass frees its lifetime, and hands it to the iterations.
func (r *replayer) endLife(d *profile.AccountStats, id uint32, b *heap.Block, seq uint64, time int64) {
	t := r.accounts.iterations
	if t == nil || t.Account != b.Account {
		return
	}
	v := &d.Cells.List[r.accounts.live.At(id).Cell]
	if t.Temporary(id, r.accounts.resolver.Phase(v), seq) {
		r.endsInPass(d, id, r.heap.Block(id))
		v = &d.Cells.List[r.accounts.live.At(id).Cell]
	}
	t.Closed(training.Ended{ID: id, Size: r.heap.Size(id), Seq: seq, Time: time}, v, d.Total.Epoch)
}

// endsInPass gives a live block the lifetime of those that their pass frees.
func (r *replayer) endsInPass(d *profile.AccountStats, id uint32, b *heap.Block) {
	o := d.Cells.List[r.accounts.live.At(id).Cell].Origin
	o.Lifetime = profile.Temporary
	r.move(d, id, &o, holdsForPast(b, &o))
}

// LateAlloc implements heap.Observer.
func (r *replayer) LateAlloc(b *heap.Block, e *trace.Event) {
	b.PyStack = r.accounts.links.Stack(e)
	if r.accounts.pass(b, e) {
		for _, f := range r.figures.blocks {
			f.passed(b)
		}
	}
}

// Refused implements heap.Observer.
func (r *replayer) Refused(e *trace.Event) { r.accounts.refuse(e) }

// restart forgets what was highest and what was counted: the window begins.
func (r *replayer) restart(at int64) {
	r.moments.kept = nil
	r.accounts.restart(at)
	r.device.Restart()
	for _, f := range r.figures.list {
		f.restart(at)
	}
}
