package analyzer

import (
	"regexp"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// name takes in what a framework calls a block that is live, or one of its objects. The first name holds for the block from its beginning on. A framework whose allocator reports
// nothing may use a block of the driver for one thing after another: names that come later hold from then on.
func (c *collector) name(e *trace.Event) {
	if e.Category == trace.CategoryModule {
		c.modules.named(e.Handle, e.Name)
	}
	if e.Category == trace.CategoryStep && c.iterations != nil {
		c.iterations.stepped(e)
	}
	if e.Addr == 0 || e.Category == trace.CategoryNone {
		return
	}
	id, ok := c.named.Find(c.heap, e.Addr)
	if !ok || c.heap.Seq(id) > e.Seq { // a late name is that of an earlier block
		return
	}
	b := c.heap.Block(id)
	c.parameters.named(e, b, c.resolver.tables)
	d := c.details[b.Account]
	if c.kept == nil || d == nil || b.Hidden {
		return
	}
	o := d.cells.list[c.cellOf[id]].origin
	if keepsName(o.category, e.Category, b.Account == heap.AccountDriver && b.Addr == e.Addr) || o.category == e.Category && o.name == e.Name {
		return
	}
	past := holdsForPast(b, &o)
	if o.category, o.name = e.Category, e.Name; e.Category == trace.CategoryFree {
		o.name = 0
	}
	c.move(d, id, &o, past)
}

// holdsForPast reports whether what is found out about a block with this origin holds from the block's beginning on. It had one and the same origin all the time, unless it is
// the driver's and had a name.
func holdsForPast(b *heap.Block, o *origin) bool {
	return b.Account == heap.AccountFramework || o.category == trace.CategoryNone
}

// move gives a live block another origin; past: also in what stood at the peak.
func (c *collector) move(d *detail, id uint32, o *origin, past bool) {
	b, epoch := c.heap.Block(id), d.total.Epoch
	n, ok := d.cells.findFrom(o, &d.cells.list[c.cellOf[id]].moved)
	if !ok {
		d.cells.retire(&c.resolver, c.kept, epoch)
		n = d.cells.add(o)
	}
	from, to := &d.cells.list[c.cellOf[id]], &d.cells.list[n]
	from.Shrink(b.Size, epoch)
	to.Grow(b.Size, epoch)
	if opened := c.openedAs[id]; past && opened <= d.peakAllocs {
		from.AtPeak -= b.Size
		to.AtPeak += b.Size
	}
	sure := c.losses.sure(b)
	if c.losses.doubted {
		d.cells.moveSure(c.cellOf[id], n, b.Size, epoch, sure, past && c.openedAs[id] <= d.peakAllocs, sure || c.losses.after(b.Account, epoch))
	}
	if past && c.moment != nil && c.openedAs[id] <= c.moment.allocs[b.Account] {
		c.moment.move(b.Account, from.origin, *o, b.Size, sure || c.moment.exact)
	}
	from.allocs--
	from.allocBytes -= b.Size
	to.allocs++
	to.allocBytes += b.Size
	c.cellOf[id] = n
	if t := c.iterations; t != nil && t.account == b.Account {
		t.renamed(id)
	}
}

// move takes bytes from one origin to another; sure: they were certain at the moment.
func (m *moment) move(a heap.Account, from, to origin, bytes uint64, sure bool) {
	place := m.placesOf(a)
	if i, held := place[from]; held {
		h := &m.held[a][i]
		h.bytes -= bytes
		h.sure -= min(h.sure, bytes)
	}
	i, known := place[to]
	if !known {
		i = len(m.held[a])
		place[to] = i
		m.held[a] = append(m.held[a], held{origin: to})
	}
	m.held[a][i].bytes += bytes
	if sure {
		m.held[a][i].sure += bytes
	}
	m.drop(a, from)
	m.drop(a, to)
}

// placesOf says where an origin stands in the list of an account. Names may come for as many blocks as there are origins, so that a search for each would take for ever.
func (m *moment) placesOf(a heap.Account) map[origin]int {
	if m.places[a] == nil {
		m.places[a] = make(map[origin]int, len(m.held[a]))
		for i := range m.held[a] {
			m.places[a][m.held[a][i].origin] = i
		}
	}
	return m.places[a]
}

// drop takes an origin that holds nothing off the list; the last one takes its place.
func (m *moment) drop(a heap.Account, o origin) {
	list, place := m.held[a], m.places[a]
	i, known := place[o]
	if !known || list[i].bytes != 0 {
		return
	}
	last := len(list) - 1
	list[i] = list[last]
	place[list[i].origin] = i
	delete(place, o)
	m.held[a] = list[:last]
}

// labelPrefixes are what names of categories begin with where they are texts of their own. MXNet's have such beginnings of their own.
var labelPrefixes = [...]string{trace.CategoryParameter: "parameter:", trace.CategoryBuffer: "buffer:", trace.CategoryGradient: "gradient:", trace.CategoryOptimizer: "optimizer_state:"}

var ownPrefix = regexp.MustCompile(`^(in_arg|arg_grad|aux_state|optimizer_state|data_entry|forward_features|head_grad|workspace):`)

// labelOf is a block's name as rules see it: "parameter:h.0.weight", "" without one.
func labelOf(t *trace.Tables, o *origin) string {
	name := t.String(o.name)
	if o.category == trace.CategoryNone || int(o.category) >= len(labelPrefixes) || ownPrefix.MatchString(name) {
		return name
	}
	return labelPrefixes[o.category] + name
}

func nameID(_ *resolver, o *origin) uint64 {
	if o.category == trace.CategoryFree {
		return 0
	}
	return uint64(o.category)<<32 | uint64(o.name)
}

func nameKey(r *resolver, id uint64) string {
	if category := trace.Category(id >> 32); category != trace.CategoryNone {
		return r.tables.String(trace.StringID(id)) + " (" + category.String() + ")"
	}
	return report.Unnamed
}

// module is the innermost module of a Python stack; see moduleNames.ofStack.
func (c *collector) module(stack trace.StackID) trace.StringID {
	return c.modules.ofStack(stack, c.links, c.resolver.tables)
}
