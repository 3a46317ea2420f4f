package analyzer

import (
	"cmp"
	"math/bits"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/cuda"
	"memtrace/trace"
)

// origin is what a block is grouped and filtered by: who asked for it, and where.
// Its fields lie without gaps, so that two are compared as one piece of memory.
type origin struct {
	stack   trace.StackID
	pyStack trace.StackID
	tag     trace.StringID
	thread  trace.ThreadID
	name    trace.StringID // what the framework calls the block; it says so after the block was made
	module  trace.StringID // innermost one that asked for the block, by the names that were known then
	call    cuda.API
	device  int16

	sizeClass uint16          // number of the interval between the boundaries that rules name; 0 without any; only rules look at it
	kind      cuda.MemoryKind // the same
	account   heap.Account    // the same
	category  trace.Category  // of the name
	lifetime  lifetime
}

// originOf leaves the size class to those who know the boundaries.
func originOf(b *heap.Block) origin {
	return origin{stack: b.Stack, pyStack: b.PyStack, tag: b.Tag, thread: b.Thread, call: b.Call, device: b.Device, kind: b.Mem, account: b.Account}
}

func (o *origin) hash() uint64 {
	const odd1, odd2, odd3 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9
	high, low := bits.Mul64((uint64(o.stack)|uint64(o.pyStack)<<32)^odd1, (uint64(o.tag)|uint64(o.thread)<<32)^odd2)
	rest := uint64(uint16(o.device)) | uint64(o.call)<<16 | uint64(o.kind)<<32 | uint64(o.account)<<40 | uint64(o.sizeClass)<<48
	named := uint64(o.name)<<32 | uint64(o.category)<<56 | uint64(o.lifetime)<<63 | uint64(o.module)
	h := (high ^ low ^ rest ^ bits.RotateLeft64(named, 32)*odd2) * odd3
	return h ^ h>>32
}

// counts sum up blocks over the whole run.
type counts struct {
	allocs, frees, allocBytes uint64
}

func (c *counts) add(d counts) {
	c.allocs += d.allocs
	c.frees += d.frees
	c.allocBytes += d.allocBytes
}

// cell holds the numbers of all blocks of one origin. Every row of every grouping is a sum of cells, made when somebody asks: what an event costs does not
// depend on what it will be grouped by.
type cell struct {
	origin
	hidden bool // the filters leave it out

	// What the iterations ask for, each plus one; 0: not known yet.
	phase        uint8
	class        uint16
	moduleNumber uint32

	// Cells that came up before where this one did, plus one; they may be another origin's by now.
	next  uint32 // behind it
	moved uint32 // when a block moved away

	owner uint32 // number of its call stack in the account's heldSeries plus one; 0: not looked up yet

	meter.Share
	counts
}

// idle reports whether a cell matters for nothing but its counts: no block of it is live or stood at the peak.
func (v *cell) idle(epoch uint64) bool { return v.allocs == v.frees && v.Peak(epoch) == 0 }

// cellsKept is how many cells may lie idle before they are retired. Programs that name every iteration make ever new origins.
const cellsKept = 1 << 16

// cells are the cells of one account. Numbers are used again once a cell was retired.
type cells struct {
	list    []cell
	slots   []uint32 // by hash; number plus one, 0 free
	unused  []uint32
	keep    int // cells that may be in use before the idle ones are looked for; 0: cellsKept
	limit   int // cells in use at which the idle ones are looked for next
	retired []map[uint64]counts
	last    uint32        // cell of the latest block
	sure    []meter.Share // by number: what of the cell's share is certain, see losses; nil while everything is
	vouched bool          // something is
}

func (c *cells) inUse() int { return len(c.list) - len(c.unused) }

// find returns the number of an origin's cell, ok=false if it has none.
func (c *cells) find(o *origin) (n uint32, ok bool) {
	if len(c.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(c.slots) - 1)
	for i := o.hash() & mask; ; i = (i + 1) & mask {
		n := c.slots[i]
		if n == 0 {
			return 0, false
		}
		if c.list[n-1].origin == *o {
			return n - 1, true
		}
	}
}

// findNext is find for the origin of a new block. Programs run in loops: the cell that came behind the latest one the last time is looked at first.
func (c *cells) findNext(o *origin) (n uint32, ok bool) {
	if int(c.last) >= len(c.list) {
		return 0, false
	}
	n, ok = c.findFrom(o, &c.list[c.last].next)
	if ok {
		c.last = n
	}
	return n, ok
}

// findFrom is find where the number of a likely cell, plus one, is known; it keeps the one that it finds.
func (c *cells) findFrom(o *origin, likely *uint32) (n uint32, ok bool) {
	if k := *likely; k != 0 && c.list[k-1].origin == *o {
		return k - 1, true
	}
	if n, ok = c.find(o); ok {
		*likely = n + 1
	}
	return n, ok
}

// add makes a cell for an origin that has none.
func (c *cells) add(o *origin) uint32 {
	n := uint32(len(c.list))
	if last := len(c.unused) - 1; last >= 0 {
		n, c.unused = c.unused[last], c.unused[:last]
		c.list[n] = cell{origin: *o}
	} else {
		c.list = append(c.list, cell{origin: *o})
	}
	if 2*c.inUse() > len(c.slots) {
		c.index(max(64, 2*len(c.slots)))
	} else {
		c.enter(n)
	}
	return n
}

// index makes the hash table anew.
func (c *cells) index(size int) {
	c.slots = make([]uint32, size)
	gone := make([]bool, len(c.list))
	for _, n := range c.unused {
		gone[n] = true
	}
	for n := range c.list {
		if !gone[n] {
			c.enter(uint32(n))
		}
	}
}

func (c *cells) enter(n uint32) {
	mask := uint64(len(c.slots) - 1)
	i := c.list[n].hash() & mask
	for c.slots[i] != 0 {
		i = (i + 1) & mask
	}
	c.slots[i] = n + 1
}

// retire drops idle cells and leaves their counts with the groupings' rows, so that memory is bounded by what is live, what stood at the peak and the rows that
// were asked for. It looks again when twice as many are in use as were left over.
func (c *cells) retire(r *resolver, by []*grouping, epoch uint64) {
	least := cmp.Or(c.keep, cellsKept)
	if c.inUse() < max(least, c.limit) {
		return
	}
	if c.retired == nil {
		c.retired = make([]map[uint64]counts, len(by))
		for g := range by {
			c.retired[g] = make(map[uint64]counts)
		}
	}
	for n := range c.list {
		v := &c.list[n]
		if v.origin == (origin{}) && v.hidden || !v.idle(epoch) { // retired before, or still needed
			continue
		}
		for g, grouping := range by {
			if v.allocs > 0 {
				id := grouping.id(r, &v.origin)
				sum := c.retired[g][id]
				sum.add(v.counts)
				c.retired[g][id] = sum
			}
		}
		*v = cell{hidden: true}
		if n < len(c.sure) {
			c.sure[n] = meter.Share{}
		}
		c.unused = append(c.unused, uint32(n))
	}
	c.index(len(c.slots))
	c.limit = 2 * c.inUse()
}

// held is a part of what was live at some moment.
type held struct {
	origin
	bytes uint64
	sure  uint64 // of them, what is certain
}

// holding lists what the cells hold, by the given measure of a cell and of what is certain of it.
func (c *cells) holding(bytes func(v *cell) uint64, sure func(*meter.Share) uint64) []held {
	list := []held{}
	for n := range c.list {
		v := &c.list[n]
		h := held{origin: v.origin, bytes: bytes(v)}
		if h.bytes == 0 {
			continue
		}
		h.sure = h.bytes
		if c.sure != nil {
			h.sure = c.sureOf(n, sure)
		}
		list = append(list, h)
	}
	return list
}
