package analyzer

import (
	"math"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/cause"
	"memtrace/internal/heap"
	"memtrace/internal/offheap"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// detailedAccounts are those that are counted by origin; of the others there are totals.
var detailedAccounts = [...]heap.Account{heap.AccountDriver, heap.AccountFramework}

// accounts count the blocks that pass the filters: in all, by device, by origin, by what was requested, and over time.
// Rows and columns are counted by the same methods.
type accounts struct {
	resolver profile.Resolver
	filter   *profile.Filter
	kept     []*profile.Grouping // what retired cells are counted by; nil: blocks are not counted by origin
	bounds   []uint64            // between size classes

	totals   [heap.AccountCount]heap.Meter // accounts without detail
	details  [heap.AccountCount]*profile.AccountStats
	aside    profile.Cells            // of accounts without detail: they hold what the filter said
	held     *profile.HeldSeries      // nil where blocks are not counted by origin
	reserves func(trace.StackID) bool // whether driver blocks are an allocator's, whose own are counted
	heights  [heap.AccountCount]heap.HeightSeries
	requests profile.Requests
	implicit [heap.AccountCount]report.ImplicitFrees

	room *offheap.Room                     // of what is kept for each live block
	live offheap.Column[profile.LiveBlock] // by block id

	estimated, runtimeOnly uint64

	links     *callstack.LinkedStacks
	modules   profile.ModuleNames
	lookahead *training.BlockNames // where the trace was read ahead
	preset    *preset              // of the block that comes from a keyframe; else nil
	thin      bool                 // what is replayed now was thinned

	iterations *training.Tracker // nil unless the summary has training
}

func newAccounts(tables *trace.Tables, kept []*profile.Grouping, f *profile.Filter) accounts {
	room := offheap.NewRoom(math.MaxInt64)
	a := accounts{filter: f, links: &callstack.LinkedStacks{}, kept: kept, room: room,
		live: offheap.NewColumn[profile.LiveBlock](room)}
	a.resolver = profile.Resolver{Tables: tables, Libraries: callstack.NewLibraries(tables),
		Stacks: callstack.NewStacks(tables, a.links)}
	for _, account := range detailedAccounts {
		a.details[account] = &profile.AccountStats{}
	}
	if kept == nil && f != nil {
		a.kept = []*profile.Grouping{&profile.ByStack}
	}
	if a.kept != nil {
		a.held = profile.NewHeldSeries()
		return a
	}
	for _, account := range detailedAccounts { // one cell for everything
		a.details[account].Cells.List = make([]profile.Cell, 1)
	}
	return a
}

func (a *accounts) frameworkEpoch() uint64 { return a.details[heap.AccountFramework].Total.Epoch }

// main is the account that reports put first, as far as the trace has been read.
func (a *accounts) main() heap.Account {
	if a.details[heap.AccountFramework].Total.Allocs > 0 {
		return heap.AccountFramework
	}
	return heap.AccountDriver
}

// open counts a new block of an account with detail, whose cell has the number n; word is the event's on the bytes
// beyond the request.
func (a *accounts) open(id uint32, b *heap.Block, word uint64, d *profile.AccountStats, n uint32) {
	v := &d.Cells.List[n]
	var rest uint32
	if b.Account == heap.AccountFramework {
		rest = a.requests.Opened(b, word, d, v)
	}
	epoch := d.Total.Epoch
	d.Open(b, v, a.frameworkEpoch())
	switch h := a.held; {
	case h == nil:
	case b.Account == heap.AccountDriver && a.reserves(b.Stack):
		h.Reserved(h.OwnerOf(v), b.Size, b.Time)
	default:
		h.Opened(h.OwnerOf(v), b.Size, b.Time)
	}
	a.heights[b.Account].Set(d.Total.Current, b.Time)
	*a.live.Slot(id) = profile.LiveBlock{Opened: d.Total.Events(), Cell: n, Rest: rest}
	if t := a.iterations; t != nil && t.Account == b.Account {
		t.Opened(id, b, v, epoch)
	}
}

// close counts the end of a block of an account with detail; next: of the allocations and frees of the thread that
// allocated it, this is the one that follows.
func (a *accounts) close(id uint32, b *heap.Block, d *profile.AccountStats, time int64, next bool) {
	live := a.live.At(id)
	v := &d.Cells.List[live.Cell]
	if b.Account == heap.AccountFramework {
		a.requests.Closed(live.Rest, b, d, v)
	}
	d.Close(b, v, a.frameworkEpoch())
	switch h := a.held; {
	case h == nil:
	case b.Account == heap.AccountDriver && a.reserves(b.Stack):
		h.Returned(h.OwnerOf(v), b.Size)
	default:
		h.Closed(h.OwnerOf(v), b.Size, time)
	}
	a.heights[b.Account].Set(d.Total.Current, time)
	if !a.thin { // of short lives few were kept
		d.Life.Add(b.Size, time-b.Time, next)
	}
}

// openTotal counts a block of an account without detail, of which only totals are kept, and what each call stack held
// over time where growth is judged.
func (a *accounts) openTotal(b *heap.Block) {
	a.totals[b.Account].Grow(b.Size, b.Time)
	if h := a.held; h != nil && cause.JudgesGrowth(b.Account) {
		h.Opened(h.OwnerOfBlock(b), b.Size, b.Time)
	}
}

func (a *accounts) closeTotal(b *heap.Block, time int64) {
	a.totals[b.Account].Shrink(b.Size)
	if h := a.held; h != nil && cause.JudgesGrowth(b.Account) {
		h.Closed(h.OwnerOfBlock(b), b.Size, time)
	}
}

// pass counts a late allocation whose block had ended, and reports whether the filters keep it and it has detail.
func (a *accounts) pass(b *heap.Block, e *trace.Event) bool {
	d := a.details[b.Account]
	if d == nil {
		if a.filter == nil || !a.hides(b, e) {
			a.countFlags(e)
			a.totals[b.Account].Pass(b.Size)
		}
		return false
	}
	v := &d.Cells.List[a.cell(&d.Cells, b, a.resolver.Places.Of(e.Stream, e.Pool), d.Total.Epoch)]
	if v.Hidden {
		return false
	}
	a.countFlags(e)
	d.Pass(b, v)
	return true
}

// refuse counts an allocation that failed.
func (a *accounts) refuse(e *trace.Event) {
	account := heap.AccountOf(e)
	var b heap.Block
	heap.FillBlock(&b, e, account)
	if a.filter != nil {
		if o := profile.OriginOf(&b); !a.filter.Pass(&a.resolver, &o) {
			return
		}
	}
	if d := a.details[account]; d != nil {
		d.Total.Refused++
		heap.Slot(&d.Devices, profile.DeviceSlot(e.Device)).Refused++
		return
	}
	a.totals[account].Refused++
}

// cell returns the number of a block's cell among those of an account whose total has the given epoch; place is the
// number of its stream and its pool. A new origin is taken notice of while the modules that were loaded then are the
// latest ones.
func (a *accounts) cell(of *profile.Cells, b *heap.Block, place uint16, epoch uint64) uint32 {
	if a.kept == nil {
		return 0
	}
	var o profile.Origin
	o.Set(b)
	o.SizeClass, o.Module, o.Place = profile.SizeClass(a.bounds, b.Size), a.module(b.PyStack), place
	if p := a.preset; p != nil {
		o.Category, o.Name, o.Module = p.category, p.name, p.module
	} else if n, known := a.lookahead.Of(b.Seq); known {
		o.Category, o.Name = n.Category, n.Name
	}
	if n, ok := of.FindNext(&o); ok {
		return n
	}
	of.Retire(&a.resolver, a.kept, epoch)
	a.resolver.Libraries.Of(o.Stack)
	n := of.Add(&o)
	if v := &of.List[n]; a.filter != nil {
		v.Hidden = !a.filter.Pass(&a.resolver, &v.Origin)
	}
	return n
}

// hides reports whether the filter leaves out a block of an account without detail.
func (a *accounts) hides(b *heap.Block, e *trace.Event) bool {
	return a.aside.List[a.cell(&a.aside, b, a.resolver.Places.Of(e.Stream, e.Pool), 0)].Hidden
}

// byOrigin returns the counts of a live block's account, nil if the block is not counted by origin.
func (a *accounts) byOrigin(b *heap.Block) *profile.AccountStats {
	if a.kept == nil || b.Hidden {
		return nil
	}
	return a.details[b.Account]
}

// originOf returns where a live block comes from.
func (a *accounts) originOf(id uint32, b *heap.Block) profile.Origin {
	if d := a.byOrigin(b); d != nil {
		return d.Cells.List[a.live.At(id).Cell].Origin
	}
	return profile.OriginOf(b)
}

// module is the innermost module of a Python stack; see profile.ModuleNames.
func (a *accounts) module(stack trace.StackID) trace.StringID {
	return a.modules.OfStack(stack, a.links, a.resolver.Tables)
}

func (a *accounts) countFlags(e *trace.Event) {
	if e.Flags&trace.FlagEstimated != 0 {
		a.estimated++
	}
	if e.Flags&trace.FlagRuntimeOnly != 0 {
		a.runtimeOnly++
	}
}

// requestedOf divides a live block by what was requested; nil where no framework reports that.
func (a *accounts) requestedOf(id uint32, b *heap.Block) *report.Requested {
	if b.Account != heap.AccountFramework || !a.requests.Known() {
		return nil
	}
	rest, known := a.live.Slot(id).Beyond()
	if b.Hidden || !known {
		return &report.Requested{UnknownBytes: b.Size}
	}
	return &report.Requested{Bytes: b.Size - rest, RestBytes: rest}
}

// restart forgets what was highest and what was counted: what is live now is the highest from here on. Shares of a
// maximum, when asked for the next one, give what they are now: see heap.Share.Peak.
func (a *accounts) restart(at int64) {
	for account := range a.totals {
		a.totals[account].Restart(at)
		a.implicit[account] = report.ImplicitFrees{}
		a.heights[account].Restart(at)
	}
	if a.held != nil {
		a.held.Restart()
	}
	for _, account := range detailedAccounts {
		d := a.details[account]
		d.Total.Restart(at)
		d.PeakEvent, d.Life = d.Total.Events(), heap.Lifetimes{}
		for i := range d.Devices {
			d.Devices[i].Restart(at)
		}
		d.Cells.Restart()
	}
	if a.iterations != nil {
		a.iterations.Forget(at)
	}
}
