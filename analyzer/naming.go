package analyzer

import (
	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/training"
	"memtrace/trace"
)

// name takes in what a framework calls a block that is live, or one of its objects. The first name holds for the block
// from its beginning on. A framework whose allocator reports nothing may use a block of the driver for one thing after
// another: names that come later hold from then on.
func (c *collector) name(e *trace.Event) {
	if e.Category == trace.CategoryModule {
		c.modules.Named(e.Handle, e.Name)
	}
	if e.Category == trace.CategoryStep && c.iterations != nil {
		c.iterations.Stepped(e)
	}
	if e.Addr == 0 || e.Category == trace.CategoryNone {
		return
	}
	id, ok := c.named.Find(c.heap, e.Addr)
	if !ok || c.heap.Seq(id) > e.Seq { // a late name is that of an earlier block
		return
	}
	b := c.heap.Block(id)
	c.parameters.Named(e, b, c.requestedOfBlock(id, b), c.resolver.Tables)
	d := c.details[b.Account]
	if c.kept == nil || d == nil || b.Hidden {
		return
	}
	o := d.Cells.List[c.cellOf[id]].Origin
	if training.KeepsName(o.Category, e.Category, b.Account == heap.AccountDriver && b.Addr == e.Addr) ||
		o.Category == e.Category && o.Name == e.Name {
		return
	}
	past := holdsForPast(b, &o)
	if o.Category, o.Name = e.Category, e.Name; e.Category == trace.CategoryFree {
		o.Name = 0
	}
	c.move(d, id, &o, past)
}

// Claimed implements heap.Claimer: driver memory is held by a pool of the program's own from now on, and is told under
// its name from its beginning on.
func (c *collector) Claimed(id uint32, b *heap.Block, e *trace.Event) {
	name, _ := e.OwnPool()
	holder := c.device.Claimed(b, c.resolver.Tables.String(name), c.resolver.Libraries, c.frameworkEpoch())
	c.segments.Claimed(id, b, holder)
	d := c.details[b.Account]
	if c.kept == nil || d == nil || b.Hidden {
		return
	}
	o := d.Cells.List[c.cellOf[id]].Origin
	if c.poolStacks == nil {
		c.poolStacks = make(map[uint64]bool)
	}
	c.poolStacks[profile.StackID(nil, &o)] = true
	past := holdsForPast(b, &o)
	o.Place = c.resolver.Places.Of(c.resolver.Places.At(o.Place).Stream, e.Pool)
	c.move(d, id, &o, past)
}

// requestedOfBlock divides a live block by what was requested; nil where no framework says that.
func (c *collector) requestedOfBlock(id uint32, b *heap.Block) *report.Requested {
	if b.Account != heap.AccountFramework || !c.requests.Known() {
		return nil
	}
	rest, known := c.requests.Rest(id)
	if !known {
		return &report.Requested{UnknownBytes: b.Size}
	}
	return &report.Requested{Bytes: b.Size - rest, RestBytes: rest}
}

// holdsForPast reports whether what is found out about a block with this origin holds from the block's beginning on. It
// had one and the same origin all the time, unless it is the driver's and had a name.
func holdsForPast(b *heap.Block, o *profile.Origin) bool {
	return b.Account == heap.AccountFramework || o.Category == trace.CategoryNone
}

// move gives a live block another origin; past: also in what stood at the peak.
func (c *collector) move(d *profile.AccountStats, id uint32, o *profile.Origin, past bool) {
	b, epoch := c.heap.Block(id), d.Total.Epoch
	n, ok := d.Cells.FindFrom(o, &d.Cells.List[c.cellOf[id]].Moved)
	if !ok {
		d.Cells.Retire(&c.resolver, c.kept, epoch)
		n = d.Cells.Add(o)
	}
	from, to := &d.Cells.List[c.cellOf[id]], &d.Cells.List[n]
	from.Shrink(b.Size, epoch)
	to.Grow(b.Size, epoch)
	if opened := c.openedAs[id]; past && opened <= d.PeakAllocs {
		from.AtPeak -= b.Size
		to.AtPeak += b.Size
	}
	var rest, unknown uint64
	if b.Account == heap.AccountFramework {
		rest, unknown = c.requests.Moved(id, b.Size, epoch, from, to, past && c.openedAs[id] <= d.PeakAllocs)
	}
	sure := c.losses.sure(b)
	if c.losses.doubted {
		d.Cells.MoveSure(c.cellOf[id], n, b.Size, epoch, sure, past && c.openedAs[id] <= d.PeakAllocs, sure ||
			c.losses.after(b.Account, epoch))
	}
	if past && c.moment != nil && c.openedAs[id] <= c.moment.Allocs[b.Account] {
		c.moment.Move(b.Account, from.Origin, *o, profile.Held{Bytes: b.Size, Rest: rest, Unknown: unknown}, sure ||
			c.moment.Exact)
	}
	if c.timeline != nil {
		c.timeline.moved(c, b, from, to, c.openedAs[id], past)
	}
	from.Allocs--
	from.AllocBytes -= b.Size
	to.Allocs++
	to.AllocBytes += b.Size
	c.cellOf[id] = n
	if t := c.iterations; t != nil && t.Account == b.Account {
		t.Renamed(id)
	}
}

// originOf tells where a live block comes from.
func (c *collector) originOf(id uint32, b *heap.Block) profile.Origin {
	if d := c.details[b.Account]; d != nil && c.kept != nil && !b.Hidden {
		return d.Cells.List[c.cellOf[id]].Origin
	}
	return profile.OriginOf(b)
}

// module is the innermost module of a Python stack; see moduleNames.ofStack.
func (c *collector) module(stack trace.StackID) trace.StringID {
	return c.modules.OfStack(stack, c.links, c.resolver.Tables)
}
