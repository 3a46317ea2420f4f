package analyzer

import (
	"memtrace/analyzer/allocator"
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/device"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/moment"
	"memtrace/analyzer/oom"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/training"
	"memtrace/cuda"
	"memtrace/trace"
)

// maxThreadOrdinals bounds the threads whose events are numbered; only damaged traces have more.
const maxThreadOrdinals = 1 << 16

// collector observes a heap and keeps every number of a summary.
type collector struct {
	heap     *heap.Heap
	resolver profile.Resolver
	filter   *profile.Filter
	kept     []*profile.Grouping // what retired cells are counted by; nil: blocks are not counted by origin
	want     moment.At
	window   *window  // nil: the whole run
	bounds   []uint64 // between size classes

	totals    [heap.AccountCount]meter.Meter // accounts without detail
	details   [heap.AccountCount]*profile.AccountStats
	held      *profile.HeldSeries // nil where blocks are not counted by origin
	heights   [heap.AccountCount]meter.HeightSeries
	requests  profile.Requests
	allocator allocator.Tracker
	past      [heap.AccountCount]*history // nil unless the summary has the blocks' history
	timeline  *overTime                   // nil unless the summary has one
	segments  *device.Segments            // nil unless past has the framework's
	historyBy []string                    // what its owners have keys of besides
	watcher   Watcher                     // nil unless somebody follows the replay
	watched   any                         // what the watcher kept of the moment that was asked for
	device    device.State
	picks     deviceMoments

	poolStacks map[uint64]bool // call stacks that take driver memory for pools of the program's own

	implicit [heap.AccountCount]report.ImplicitFrees
	launches uint64

	openedAs   []uint64 // by block id, unless all have one cell: how many allocations its account had with it
	cellOf     []uint32 // by block id, unless all have one cell: the number of the block's cell
	named      heap.Locator
	links      *callstack.LinkedStacks
	lookahead  *training.BlockNames // where the trace was read ahead
	thin       bool                 // what is replayed now was thinned
	modules    profile.ModuleNames
	parameters training.ParameterList
	aside      profile.Cells // of accounts without detail: they hold what the filter said

	threads  []uint32 // memory events seen, by thread; may wrap around
	ordinal  uint32   // of the event being replayed, within its thread
	lastTime int64

	estimated, runtimeOnly, lost uint64
	losses                       losses
	bounded                      *report.Bounds // of the summary that is being made; nil if nothing was lost
	marks                        []markCount
	markIndex                    map[trace.StringID]int
	steps                        report.Iterations
	epochs                       report.Iterations
	ooms                         oom.Tracker
	moment                       *moment.State
	iterations                   *training.Tracker // nil unless the summary has training

	run     frameworkRun
	rowRoom []trace.Event // where events become rows
}

// newCollector returns a collector that counts the blocks of retired cells by some groupings. With none and no filter,
// it does not count by origin at all.
func newCollector(tables *trace.Tables, kept []*profile.Grouping, f *profile.Filter, want moment.At) *collector {
	c := &collector{filter: f, want: want, markIndex: make(map[trace.StringID]int), links: &callstack.LinkedStacks{}}
	c.resolver = profile.Resolver{Tables: tables, Libraries: callstack.NewLibraries(tables),
		Stacks: callstack.NewStacks(tables, c.links), Module: c.module}
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		c.details[a] = &profile.AccountStats{}
	}
	if c.kept = kept; kept == nil && f != nil {
		c.kept = []*profile.Grouping{&profile.ByStack}
	}
	if c.kept != nil {
		c.held = profile.NewHeldSeries()
	} else {
		c.countTogether()
	}
	c.heap = heap.NewHeap(c)
	c.ooms.Resolver, c.ooms.Heap, c.ooms.Devices, c.ooms.Replay = &c.resolver, c.heap, &c.device, c
	c.ooms.OriginOf, c.ooms.Divide = c.originOf, c.divide
	return c
}

// countTogether makes one cell for everything, for those who do not ask where blocks come from.
func (c *collector) countTogether() {
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		c.details[a].Cells.List = make([]profile.Cell, 1)
	}
}

// event replays one event.
func (c *collector) event(e *trace.Event) {
	if c.window != nil && c.skips(e) {
		return
	}
	c.before(e)
	if c.window != nil && c.leaves(e) {
		return
	}
	if c.losses.begun {
		c.loseSight(e)
	}
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree:
		c.ordinal = c.nextOrdinal(e.Thread)
		epoch := c.frameworkEpoch()
		c.heap.Apply(e)
		if e.Level == cuda.LevelFramework && e.Status == 0 && heap.AccountOf(e) == heap.AccountFramework {
			c.report(e, epoch)
		}
		if c.want.Kind == moment.Teardown { // asked first, since events are many
			c.keepIfWanted(e)
		}
	case trace.EventMap, trace.EventUnmap, trace.EventCreate, trace.EventDestroy:
		c.heap.Apply(e)
		c.segments.Follow(e, c.heap, c.resolver.Libraries, c.pastEvents())
		c.device.Changed(e)
	case trace.EventReserve:
		if e.Flags&trace.FlagLate == 0 || !c.heap.EndedSince(e) {
			c.device.Sizes.Reserve(e)
		}
	case trace.EventSample:
		c.sample(e)
	case trace.EventLaunch:
		if e.Status == 0 {
			c.launches++
		}
	case trace.EventName:
		c.name(e)
	case trace.EventMark:
		c.addMark(e)
		c.keepIfWanted(e)
	case trace.EventStep:
		addIteration(&c.steps, e)
		c.keepIfWanted(e)
	case trace.EventEpoch:
		addIteration(&c.epochs, e)
	case trace.EventLost:
		c.lose(e)
	case trace.EventWait, trace.EventComplete, trace.EventEmptyCache, trace.EventAsk, trace.EventSetting:
		c.allocator.Event(e, profile.DeviceSlot(e.Device), c.frameworkEpoch(), c.resolver.Tables.String)
	}
	c.ooms.Event(e)
	c.lastTime = max(c.lastTime, e.Time)
	c.after(e)
}

// keepIfWanted copies the totals if e is the moment that was asked for; the last one stays.
func (c *collector) keepIfWanted(e *trace.Event) {
	if c.want.Hits(e, c.resolver.Tables) {
		c.moment = c.now(e.Time)
	}
}

// report takes in a framework event's counters; epoch is that of the framework's total before the event.
func (c *collector) report(e *trace.Event, epoch uint64) {
	c.device.Report(e, c.resolver.Libraries, epoch)
	if c.iterations != nil {
		c.iterations.Reserved(e.Device, e.Reserved)
	}
}

func (c *collector) frameworkEpoch() uint64 { return c.details[heap.AccountFramework].Total.Epoch }

// nextOrdinal numbers the memory events of a thread from 1.
func (c *collector) nextOrdinal(thread trace.ThreadID) uint32 {
	n := meter.Slot(&c.threads, int(min(thread, maxThreadOrdinals)))
	*n++
	return *n
}

// Opened implements Observer.
func (c *collector) Opened(id uint32, b *heap.Block, e *trace.Event) {
	b.Ordinal, b.PyStack = c.ordinal, c.links.Stack(e)
	if c.losses.begun && e.Kind == trace.EventMap {
		c.doubt(e.Seq) // its size may be that of another mapping
	}
	c.device.Opened(b, e.Pool, c.resolver.Libraries, c.frameworkEpoch())
	c.segments.Opened(id, b, c.resolver.Libraries, c.pastEvents())
	d := c.details[b.Account]
	if d == nil {
		if b.Hidden = c.filter != nil && c.hides(b, e); b.Hidden {
			return
		}
		c.countFlags(e)
		if c.losses.doubted {
			c.vouch(b, e, nil, 0)
		}
		c.openedAside(b)
		if c.watcher != nil {
			c.watcher.Opened(id, b, e)
		}
		return
	}
	n := c.cell(&d.Cells, b, c.resolver.Places.Of(e.Stream, e.Pool), d.Total.Epoch)
	v := &d.Cells.List[n]
	if b.Hidden = v.Hidden; b.Hidden {
		return
	}
	c.countFlags(e)
	if c.losses.doubted {
		c.vouch(b, e, d, n)
	}
	if b.Account == heap.AccountFramework {
		c.requests.Opened(id, b, e.Rest, d, v)
	}
	d.Open(b, v, c.frameworkEpoch())
	if h := c.held; h != nil {
		h.Opened(h.OwnerOf(v), b.Size, b.Time)
	}
	c.heights[b.Account].Set(d.Total.Current, b.Time)
	if c.kept != nil {
		*meter.Slot(&c.cellOf, int(id)), *meter.Slot(&c.openedAs, int(id)) = n, d.Total.Allocs
	}
	if h := c.past[b.Account]; h != nil {
		h.opened(id, d.Total.Current)
	}
	if c.watcher != nil {
		c.watcher.Opened(id, b, e)
	}
	if c.timeline != nil {
		c.timeline.opened(c, id, b, v, e.Time)
	}
	if t := c.iterations; t != nil && t.Account == b.Account {
		t.Opened(id, b, v)
	}
}

// cell returns the number of a block's cell among those of an account whose total has the given epoch; place is the
// number of its stream and its pool. A new origin is taken notice of while the modules that were loaded then are the
// latest ones.
func (c *collector) cell(of *profile.Cells, b *heap.Block, place uint16, epoch uint64) uint32 {
	if c.kept == nil {
		return 0
	}
	var o profile.Origin
	o.Set(b)
	o.SizeClass, o.Module, o.Place = profile.SizeClass(c.bounds, b.Size), c.module(b.PyStack), place
	if n, known := c.lookahead.Of(b.Seq); known {
		o.Category, o.Name = n.Category, n.Name
	}
	if n, ok := of.FindNext(&o); ok {
		return n
	}
	of.Retire(&c.resolver, c.kept, epoch)
	c.resolver.Libraries.Of(o.Stack)
	n := of.Add(&o)
	if v := &of.List[n]; c.filter != nil {
		v.Hidden = !c.filter.Pass(&c.resolver, &v.Origin)
	}
	return n
}

// hides reports whether the filter leaves out a block of an account without detail.
func (c *collector) hides(b *heap.Block, e *trace.Event) bool {
	return c.aside.List[c.cell(&c.aside, b, c.resolver.Places.Of(e.Stream, e.Pool), 0)].Hidden
}

func (c *collector) countFlags(e *trace.Event) {
	if e.Flags&trace.FlagEstimated != 0 {
		c.estimated++
	}
	if e.Flags&trace.FlagRuntimeOnly != 0 {
		c.runtimeOnly++
	}
}

// Closed implements Observer.
func (c *collector) Closed(id uint32, b *heap.Block, e *trace.Event) {
	c.device.Closed(b, c.resolver.Libraries, c.frameworkEpoch())
	if b.Account == heap.AccountDriver {
		c.allocator.Freed(e.Thread, b.Size)
	}
	c.segments.Closed(id, b, c.pastEvents())
	if b.Hidden {
		return
	}
	if c.watcher != nil {
		c.watcher.Closed(id, b, e)
	}
	if e.Kind == trace.EventDestroy && !b.OfPool() { // of a pool of its own the program says that they end
		c.implicit[b.Account].Add(b.Size)
	}
	d := c.details[b.Account]
	if d == nil {
		if c.losses.doubted {
			c.unvouch(b, nil, 0)
		}
		c.closedAside(b, e.Time)
		return
	}
	if t := c.iterations; t != nil && t.Account == b.Account {
		c.closeInIteration(t, d, id, e.Seq, e.Time)
	}
	if c.losses.doubted {
		c.unvouch(b, d, c.cellNumber(id))
	}
	v := &d.Cells.List[c.cellNumber(id)]
	if h := c.past[b.Account]; h != nil {
		h.closed(id, b, &v.Origin, e.Time, d.Total.Current-b.Size)
	}
	if c.window != nil && c.kept != nil {
		c.window.closed(b, &c.openedAs[id], &v.Origin)
	}
	if b.Account == heap.AccountFramework {
		c.requests.Closed(id, b, d, v)
	}
	d.Close(b, v, c.frameworkEpoch())
	if h := c.held; h != nil {
		h.Closed(h.OwnerOf(v), b.Size, e.Time)
	}
	c.heights[b.Account].Set(d.Total.Current, e.Time)
	if c.timeline != nil {
		c.timeline.closed(c, id, b, v, e.Time)
	}
	temporary := e.Kind == trace.EventFree && e.Thread == b.Thread && c.ordinal == b.Ordinal+1
	if !c.thin { // of short lives few were kept
		d.Life.Add(b.Size, e.Time-b.Time, temporary)
	}
}

// cellNumber returns the number of a block's cell: the only one where nobody asked where blocks come from.
func (c *collector) cellNumber(id uint32) uint32 {
	if c.kept == nil {
		return 0
	}
	return c.cellOf[id]
}

// closeInIteration gives a block that its pass frees its lifetime, and hands it to the iterations.
func (c *collector) closeInIteration(t *training.Tracker, d *profile.AccountStats, id uint32, seq uint64, time int64) {
	v := &d.Cells.List[c.cellOf[id]]
	if t.Temporary(id, c.resolver.Phase(v), seq) {
		o := v.Origin
		o.Lifetime = profile.Temporary
		c.move(d, id, &o, holdsForPast(c.heap.Block(id), &o))
		v = &d.Cells.List[c.cellOf[id]]
	}
	t.Closed(id, v, time)
}

// LateAlloc implements Observer.
func (c *collector) LateAlloc(b *heap.Block, e *trace.Event) {
	b.PyStack = c.links.Stack(e)
	d := c.details[b.Account]
	if d == nil {
		if c.filter == nil || !c.hides(b, e) {
			c.countFlags(e)
			c.totals[b.Account].Pass(b.Size)
		}
		return
	}
	if v := &d.Cells.List[c.cell(&d.Cells, b, c.resolver.Places.Of(e.Stream, e.Pool), d.Total.Epoch)]; !v.Hidden {
		c.countFlags(e)
		d.Pass(b, v)
		if c.watcher != nil {
			c.watcher.Passed(b)
		}
	}
}

// Refused implements Observer.
func (c *collector) Refused(e *trace.Event) {
	account := heap.AccountOf(e)
	var b heap.Block
	heap.FillBlock(&b, e, account)
	if c.filter != nil {
		if o := profile.OriginOf(&b); !c.filter.Pass(&c.resolver, &o) {
			return
		}
	}
	if d := c.details[account]; d != nil {
		d.Total.Refused++
		meter.Slot(&d.Devices, profile.DeviceSlot(e.Device)).Refused++
		return
	}
	c.totals[account].Refused++
}
