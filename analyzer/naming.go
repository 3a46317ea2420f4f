package analyzer

import (
	"cmp"
	"slices"

	"memtrace/trace"
)

// Unnamed stands for memory that no framework has a name for.
const Unnamed = "(unnamed)"

// frameworkBlocks finds the block of a framework that holds an address. Names come in bursts, so addresses inside of blocks are looked up in a list that is made when
// blocks came or went since the last time.
type frameworkBlocks struct {
	sorted  []uint32 // block ids by address
	changes uint64   // blocks that had come and gone when it was made
}

func (f *frameworkBlocks) find(h *Heap, addr uint64) (id uint32, ok bool) {
	live := &h.live[spaceFramework]
	if id, ok := live.get(addr); ok {
		return id, true
	}
	if f.changes != h.changes {
		f.sorted, f.changes = f.sorted[:0], h.changes
		for _, s := range live.slots {
			if s.addr != 0 {
				f.sorted = append(f.sorted, s.block)
			}
		}
		slices.SortFunc(f.sorted, func(a, b uint32) int { return cmp.Compare(h.blocks[a].Addr, h.blocks[b].Addr) })
	}
	i, _ := slices.BinarySearchFunc(f.sorted, addr, func(id uint32, addr uint64) int {
		if h.blocks[id].Addr <= addr {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0, false
	}
	b := &h.blocks[f.sorted[i-1]]
	return f.sorted[i-1], addr-b.Addr < b.Size
}

// name takes in what a framework calls a block that is live, or one of its objects. It holds for the block from its beginning on.
func (c *collector) name(e *trace.Event) {
	if e.Addr == 0 {
		return
	}
	d := c.details[AccountFramework]
	id, ok := c.named.find(c.heap, e.Addr)
	if !ok || c.kept == nil {
		return
	}
	if b := &c.heap.blocks[id]; b.Account != AccountFramework || b.hidden || b.Seq > e.Seq { // a late name is that of an earlier block
		return
	}
	o := d.cells.list[c.cellOf[id]].origin
	if e.Category == trace.CategoryNone || o.category != trace.CategoryNone && o.category <= e.Category { // several tensors in one block: the first name of the first category stays
		return
	}
	o.category, o.name = e.Category, e.Name
	c.move(d, id, &o)
}

// move gives a live block another origin, also in what stood at the peak.
func (c *collector) move(d *detail, id uint32, o *origin) {
	b, epoch := &c.heap.blocks[id], d.total.epoch
	n, ok := d.cells.find(o)
	if !ok {
		d.cells.retire(&c.resolver, c.kept, epoch)
		n = d.cells.add(o)
	}
	from, to := &d.cells.list[c.cellOf[id]], &d.cells.list[n]
	from.shrink(b.Size, epoch)
	to.grow(b.Size, epoch)
	if opened := c.openedAs[id]; opened <= d.peakAllocs {
		from.atPeak -= b.Size
		to.atPeak += b.Size
	}
	if c.moment != nil && c.openedAs[id] <= c.moment.allocs {
		c.moment.move(b.Account, from.origin, *o, b.Size)
	}
	from.allocs--
	from.allocBytes -= b.Size
	to.allocs++
	to.allocBytes += b.Size
	c.cellOf[id] = n
}

// move takes bytes from one origin to another.
func (m *moment) move(a Account, from, to origin, bytes uint64) {
	list, target := m.held[a], -1
	for i := range list {
		switch list[i].origin {
		case from:
			list[i].bytes -= bytes
		case to:
			target = i
		}
	}
	if target < 0 {
		target = len(list)
		list = append(list, held{origin: to})
	}
	list[target].bytes += bytes
	m.held[a] = slices.DeleteFunc(list, func(h held) bool { return h.bytes == 0 })
}

func nameID(_ *resolver, o *origin) uint64 { return uint64(o.category)<<32 | uint64(o.name) }

func nameKey(r *resolver, id uint64) string {
	if category := trace.Category(id >> 32); category != trace.CategoryNone {
		return r.tables.String(trace.StringID(id)) + " (" + category.String() + ")"
	}
	return Unnamed
}
