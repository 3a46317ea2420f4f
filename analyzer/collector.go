package analyzer

import (
	"slices"

	"memtrace/cuda"
	"memtrace/trace"
)

// maxThreadOrdinals bounds the threads whose events are numbered; only damaged traces have more.
const maxThreadOrdinals = 1 << 16

// collector observes a heap and keeps every number of a summary.
type collector struct {
	heap      *Heap
	resolver  resolver
	filter    *filter
	groupings []*grouping
	crossed   []*grouping // the two of a crossed table; nil without one
	kept      []*grouping // what retired cells are counted by: the groupings, then byStack; nil: blocks are not counted by origin
	want      At
	since     At       // what peaks begin at; none once it came
	bounds    []uint64 // between size classes

	totals   [accountCount]meter // accounts without detail
	details  [accountCount]*detail
	held     [accountCount]*heldSeries // nil where blocks are not counted by origin
	heights  [accountCount]heightSeries
	requests requests
	past     [accountCount]*history // nil unless the summary has the blocks' history
	holding  holdings
	sizes    sizes
	samples  samples

	implicit [accountCount]ImplicitFrees
	launches uint64

	openedAs   []uint64 // by block id, unless all have one cell: how many allocations its account had with it
	cellOf     []uint32 // by block id, unless all have one cell: the number of the block's cell
	named      Locator
	links      *linkedStacks
	foretold   *blockNames // where the trace was read ahead
	modules    moduleNames
	parameters parameterList
	aside      cells // of accounts without detail: they hold what the filter said

	threads  []uint32 // memory events seen, by thread; may wrap around
	ordinal  uint32   // of the event being replayed, within its thread
	lastTime int64

	estimated   uint64
	runtimeOnly uint64
	lost        uint64
	losses      losses
	rowIndexes  []*rowIndex // by grouping, of the summary in progress
	bounded     *Bounds     // of the summary that is being made; nil if nothing was lost
	marks       []markCount
	markIndex   map[trace.StringID]int
	steps       Iterations
	epochs      Iterations
	ooms        oomTracker
	moment      *moment
	iterations  *iterationTracker // nil unless the summary has training
}

type markCount struct {
	id trace.StringID
	Mark
	sure [2]uint64 // of the driver's and the framework's bytes, what is certain
}

func newCollector(tables *trace.Tables, picked []*grouping, f *filter, want At) *collector {
	c := &collector{filter: f, groupings: picked, want: want, markIndex: make(map[trace.StringID]int), links: &linkedStacks{}}
	c.resolver = resolver{tables: tables, libraries: newLibraries(tables), stacks: newCallStacks(tables, c.links), module: c.module}
	for _, a := range []Account{AccountDriver, AccountFramework} {
		c.details[a] = &detail{}
	}
	if len(picked) > 0 || f != nil {
		c.kept = append(slices.Clone(picked), &byStack)
		for _, a := range []Account{AccountDriver, AccountFramework} {
			c.held[a] = newHeldSeries()
		}
	} else {
		c.countTogether()
	}
	c.heap = NewHeap(c)
	return c
}

// countTogether makes one cell for everything, for those who do not ask where blocks come from.
func (c *collector) countTogether() {
	for _, a := range []Account{AccountDriver, AccountFramework} {
		c.details[a].cells.list = make([]cell, 1)
	}
}

// event replays one event.
func (c *collector) event(e *trace.Event) {
	if c.moment == nil && c.want.before(e) {
		c.moment = c.now(c.want.time)
	}
	if c.since.kind != momentNone {
		c.beginIfSince(e)
	}
	if c.iterations != nil {
		c.iterations.event(c, e)
	}
	if c.losses.begun {
		c.loseSight(e)
	}
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree:
		c.ordinal = c.nextOrdinal(e.Thread)
		epoch := c.frameworkEpoch()
		c.heap.Apply(e)
		if e.Level == cuda.LevelFramework && e.Status == 0 && accountOf(e) == AccountFramework {
			c.report(e, epoch)
		}
		if c.want.kind == momentTeardown { // asked first, since events are many
			c.keepIfWanted(e)
		}
	case trace.EventMap, trace.EventUnmap, trace.EventCreate:
		c.heap.Apply(e)
	case trace.EventDestroy:
		c.heap.Apply(e)
		c.sizes.forget(e)
	case trace.EventReserve:
		if e.Flags&trace.FlagLate == 0 || !c.heap.EndedSince(e) {
			c.sizes.reserve(e)
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
	}
	c.oomEvent(e)
	c.lastTime = max(c.lastTime, e.Time)
}

// keepIfWanted copies the totals if e is the moment that was asked for; the last one stays.
func (c *collector) keepIfWanted(e *trace.Event) {
	if c.want.hits(e, c.resolver.tables) {
		c.moment = c.now(e.Time)
	}
}

// report takes in a framework event's counters; epoch is that of the framework's total before the event.
func (c *collector) report(e *trace.Event, epoch uint64) {
	if c.holding.library == unknownLibrary {
		c.holding.library = c.resolver.libraries.of(e.Stack)
	}
	c.holding.report(e, epoch)
	if c.iterations != nil {
		c.iterations.report(e)
	}
}

func (c *collector) frameworkEpoch() uint64 { return c.details[AccountFramework].total.epoch }

// nextOrdinal numbers the memory events of a thread from 1.
func (c *collector) nextOrdinal(thread trace.ThreadID) uint32 {
	n := at(&c.threads, int(min(thread, maxThreadOrdinals)))
	*n++
	return *n
}

// Opened implements Observer.
func (c *collector) Opened(id uint32, b *Block, e *trace.Event) {
	b.ordinal, b.PyStack = c.ordinal, c.links.stack(e)
	if c.losses.begun && e.Kind == trace.EventMap {
		c.doubt(e.Seq) // its size may be that of another mapping
	}
	c.holdingOpened(b)
	d := c.details[b.Account]
	if d == nil {
		if b.hidden = c.filter != nil && c.hides(b); b.hidden {
			return
		}
		c.countFlags(e)
		if c.losses.doubted {
			c.vouch(b, e, nil, 0)
		}
		c.totals[b.Account].grow(b.Size, b.Time)
		return
	}
	n := c.cell(&d.cells, b, d.total.epoch)
	v := &d.cells.list[n]
	if b.hidden = v.hidden; b.hidden {
		return
	}
	c.countFlags(e)
	if c.losses.doubted {
		c.vouch(b, e, d, n)
	}
	if b.Account == AccountFramework {
		c.requests.opened(id, b, e, d)
	}
	d.open(b, v, c.frameworkEpoch())
	if h := c.held[b.Account]; h != nil {
		h.opened(h.ownerOf(v), b.Size, b.Time)
	}
	c.heights[b.Account].set(d.total.current, b.Time)
	if c.kept != nil {
		*at(&c.cellOf, int(id)), *at(&c.openedAs, int(id)) = n, d.total.allocs
	}
	if h := c.past[b.Account]; h != nil {
		h.opened(id)
	}
	if t := c.iterations; t != nil && t.account == b.Account {
		t.opened(c, id, b, v)
	}
}

// cell returns the number of a block's cell among those of an account whose total has the given epoch. A new origin is taken notice of while the modules that were
// loaded then are the latest ones.
func (c *collector) cell(of *cells, b *Block, epoch uint64) uint32 {
	if c.kept == nil {
		return 0
	}
	o := originOf(b)
	o.sizeClass, o.module = sizeClass(c.bounds, b.Size), c.module(b.PyStack)
	if n, known := c.foretold.foretell(b.Seq); known {
		o.category, o.name = n.category, n.name
	}
	if n, ok := of.findNext(&o); ok {
		return n
	}
	of.retire(&c.resolver, c.kept, epoch)
	c.resolver.libraries.of(o.stack)
	n := of.add(&o)
	if v := &of.list[n]; c.filter != nil {
		v.hidden = !c.filter.pass(&c.resolver, &v.origin)
	}
	return n
}

// hides reports whether the filter leaves out a block of an account without detail.
func (c *collector) hides(b *Block) bool { return c.aside.list[c.cell(&c.aside, b, 0)].hidden }

func (c *collector) countFlags(e *trace.Event) {
	if e.Flags&trace.FlagEstimated != 0 {
		c.estimated++
	}
	if e.Flags&trace.FlagRuntimeOnly != 0 {
		c.runtimeOnly++
	}
}

// Closed implements Observer.
func (c *collector) Closed(id uint32, b *Block, e *trace.Event) {
	c.holdingClosed(b)
	if b.hidden {
		return
	}
	if e.Kind == trace.EventDestroy {
		c.implicit[b.Account].Add(b.Size)
	}
	d := c.details[b.Account]
	if d == nil {
		if c.losses.doubted {
			c.unvouch(b, nil, 0)
		}
		c.totals[b.Account].shrink(b.Size)
		return
	}
	if t := c.iterations; t != nil && t.account == b.Account {
		c.closeInIteration(t, d, id, e.Time)
	}
	if c.losses.doubted {
		c.unvouch(b, d, c.cellNumber(id))
	}
	v := &d.cells.list[c.cellNumber(id)]
	if h := c.past[b.Account]; h != nil {
		h.closed(id, b, &v.origin, e.Time)
	}
	if b.Account == AccountFramework {
		c.requests.closed(id, b, d)
	}
	d.close(b, v, c.frameworkEpoch())
	if h := c.held[b.Account]; h != nil {
		h.closed(h.ownerOf(v), b.Size, e.Time)
	}
	c.heights[b.Account].set(d.total.current, e.Time)
	temporary := e.Kind == trace.EventFree && e.Thread == b.Thread && c.ordinal == b.ordinal+1
	d.life.add(b.Size, e.Time-b.Time, temporary)
}

// cellNumber returns the number of a block's cell: the only one where nobody asked where blocks come from.
func (c *collector) cellNumber(id uint32) uint32 {
	if c.kept == nil {
		return 0
	}
	return c.cellOf[id]
}

// closeInIteration gives a block that its pass frees its lifetime, and hands it to the iterations.
func (c *collector) closeInIteration(t *iterationTracker, d *detail, id uint32, time int64) {
	v := &d.cells.list[c.cellOf[id]]
	if t.temporary(id, c.phase(v)) {
		o := v.origin
		o.lifetime = temporary
		c.move(d, id, &o, holdsForPast(c.heap.Block(id), &o))
		v = &d.cells.list[c.cellOf[id]]
	}
	t.closed(c, id, v, time)
}

// Elapsed implements Observer.
func (c *collector) Elapsed(b *Block, e *trace.Event) {
	b.PyStack = c.links.stack(e)
	d := c.details[b.Account]
	if d == nil {
		if c.filter == nil || !c.hides(b) {
			c.countFlags(e)
			c.totals[b.Account].pass(b.Size)
		}
		return
	}
	if v := &d.cells.list[c.cell(&d.cells, b, d.total.epoch)]; !v.hidden {
		c.countFlags(e)
		d.pass(b, v)
	}
}

// Refused implements Observer.
func (c *collector) Refused(e *trace.Event) {
	account := accountOf(e)
	var b Block
	fillBlock(&b, e, account)
	if c.filter != nil {
		if o := originOf(&b); !c.filter.pass(&c.resolver, &o) {
			return
		}
	}
	if d := c.details[account]; d != nil {
		d.total.refused++
		at(&d.devices, deviceSlot(e.Device)).refused++
		return
	}
	c.totals[account].refused++
}

func (c *collector) holdingOpened(b *Block) {
	switch b.Account {
	case AccountDriver:
		c.holding.openDriver(deviceSlot(b.Device), c.resolver.libraries.of(b.Stack), b.Size, c.frameworkEpoch())
		c.sizes.opened(b)
	case AccountFramework:
		c.holding.device(deviceSlot(b.Device)).blocks += b.Size
	}
}

func (c *collector) holdingClosed(b *Block) {
	switch b.Account {
	case AccountDriver:
		c.holding.closeDriver(deviceSlot(b.Device), c.resolver.libraries.of(b.Stack), b.Size, c.frameworkEpoch())
		c.sizes.closed(b)
	case AccountFramework:
		c.holding.device(deviceSlot(b.Device)).blocks -= b.Size
	}
}

func (c *collector) addMark(e *trace.Event) {
	i, known := c.markIndex[e.Name]
	if !known {
		i = len(c.marks)
		c.markIndex[e.Name] = i
		c.marks = append(c.marks, markCount{id: e.Name, Mark: Mark{FirstTimeNS: e.Time}})
	}
	m := &c.marks[i]
	m.Count++
	m.LastTimeNS = e.Time
	m.DriverBytes = c.details[AccountDriver].total.current
	m.FrameworkBytes = c.details[AccountFramework].total.current
	if m.sure = [2]uint64{m.DriverBytes, m.FrameworkBytes}; c.losses.doubted {
		m.sure = [2]uint64{c.details[AccountDriver].total.sure, c.details[AccountFramework].total.sure}
	}
}

func addIteration(i *Iterations, e *trace.Event) {
	if i.Count == 0 {
		i.FirstNumber, i.FirstTimeNS = e.Count, e.Time
	}
	i.Count++
	i.LastNumber, i.LastTimeNS = e.Count, e.Time
}
