package analyzer

import (
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// name takes in what a framework calls a block that is live, or one of its objects. The first name holds for the block
// from its beginning on. A framework whose allocator reports nothing may use a block of the driver for one thing after
// another: names that come later hold from then on.
func (r *replayer) name(e *trace.Event) {
	a := &r.accounts
	if e.Category == trace.CategoryModule {
		a.modules.Named(e.Handle, e.Name)
	}
	if e.Category == trace.CategoryStep && a.iterations != nil {
		a.iterations.Stepped(e)
	}
	id, ok := namedBlock(&r.named, r.heap, e)
	if !ok {
		return
	}
	if a.lookahead == nil {
		r.elements = r.elements.Named(e)
	}
	b := r.heap.Block(id)
	r.parameters.Named(e, b, a.requestedOf(id, b), a.resolver.Tables)
	d := a.byOrigin(b)
	if d == nil {
		return
	}
	o := d.Cells.List[a.live.At(id).Cell].Origin
	if training.KeepsName(o.Category, e.Category, b.Account == heap.AccountDriver && b.Addr == e.Addr) ||
		o.Category == e.Category && o.Name == e.Name {
		return
	}
	past := holdsForPast(b, &o)
	if o.Category, o.Name = e.Category, e.Name; e.Category == trace.CategoryFree {
		o.Name = 0
	}
	r.move(d, id, &o, past)
}

// namedBlock returns the live block that an event names.
func namedBlock(l *heap.Locator, h *heap.Heap, e *trace.Event) (id uint32, ok bool) {
	if e.Addr == 0 || e.Category == trace.CategoryNone {
		return 0, false
	}
	id, ok = l.Find(h, e.Addr)
	return id, ok && h.Seq(id) <= e.Seq // a late name is that of an earlier block
}

// Claimed implements heap.Claimer: driver memory is held by a pool of the program's own from now on, and is told under
// its name from its beginning on.
func (r *replayer) Claimed(id uint32, b *heap.Block, e *trace.Event) {
	name, _ := e.OwnPool()
	a := &r.accounts
	r.device.Claimed(id, b, a.resolver.Tables.String(name), a.resolver.Libraries, a.frameworkEpoch())
	d := a.byOrigin(b)
	if d == nil {
		return
	}
	o := d.Cells.List[a.live.At(id).Cell].Origin
	if r.poolStacks == nil {
		r.poolStacks = make(map[uint64]bool)
	}
	r.poolStacks[profile.StackID(nil, &o)] = true
	past := holdsForPast(b, &o)
	o.Place = a.resolver.Places.Of(a.resolver.Places.At(o.Place).Stream, e.Pool)
	r.move(d, id, &o, past)
}

// holdsForPast reports whether what is found out about a block with this origin holds from the block's beginning on. It
// had one and the same origin all the time, unless it is the driver's and had a name.
func holdsForPast(b *heap.Block, o *profile.Origin) bool {
	return b.Account == heap.AccountFramework || o.Category == trace.CategoryNone
}

// move gives a live block another origin; past: also in what stood at the peak.
func (r *replayer) move(d *profile.AccountStats, id uint32, o *profile.Origin, past bool) {
	a, b, epoch := &r.accounts, r.heap.Block(id), d.Total.Epoch
	live := a.live.At(id)
	n, ok := d.Cells.FindFrom(o, &d.Cells.List[live.Cell].Moved)
	if !ok {
		d.Cells.Retire(&a.resolver, a.kept, epoch)
		n = d.Cells.Add(o)
	}
	from, to := &d.Cells.List[live.Cell], &d.Cells.List[n]
	atPeak := past && live.Opened <= d.PeakEvent
	from.Shrink(b.Size, epoch)
	to.Grow(b.Size, epoch)
	if atPeak {
		from.AtPeak -= b.Size
		to.AtPeak += b.Size
	}
	var rest, unknown uint64
	if b.Account == heap.AccountFramework {
		rest, unknown = a.requests.Moved(live.Rest, b.Size, epoch, from, to, atPeak)
	}
	sure := r.losses.isCertain(b)
	if r.losses.uncertain {
		d.Cells.MoveCertain(live.Cell, n, b.Size, epoch, sure, atPeak, sure || r.losses.after(b.Account, epoch))
	}
	if m := r.moments.kept; past && m != nil && live.Opened <= m.Events[b.Account] {
		m.Move(b.Account, from.Origin, *o, profile.Held{Bytes: b.Size, Rest: rest, Unknown: unknown}, sure || m.Exact)
	}
	x := relabel{block: b, from: from, to: to, began: live.Opened, past: past}
	for _, f := range r.figures.blocks {
		f.moved(&x)
	}
	from.Allocs--
	from.AllocBytes -= b.Size
	to.Allocs++
	to.AllocBytes += b.Size
	live.Cell = n
	if t := a.iterations; t != nil && t.Account == b.Account {
		t.Moved(id, b.Size, from, to)
	}
}
