package profile

import (
	"cmp"
	"math/bits"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Origin is the fields by which a block is grouped and filtered: which code allocated it, and where.
type Origin struct {
	Stack   trace.StackID
	PyStack trace.StackID
	Tag     trace.StringID
	Thread  trace.ThreadID
	Name    trace.StringID // the framework's name of the block, which is set after its allocation
	Module  trace.StringID // innermost one that allocated the block, by its name at that time
	call    cuda.API
	Device  int16

	// number of the interval between the boundaries in rules; 0 without any; only rules use it
	SizeClass uint16
	kind      cuda.MemoryKind // the same
	account   heap.Account    // the same
	Category  trace.Category  // of the name
	Lifetime  lifetime
	Place     uint16 // number of its stream and its pool
}

// OriginOf returns the origin of a block; its size class and place are filled in by the caller.
func OriginOf(b *heap.Block) (o Origin) {
	o.Set(b)
	return o
}

// Set is OriginOf for an origin whose other fields are zero. Its fields are written one by one, as they are compared: a
// wide load after narrow stores stalls the processor (failed store forwarding).
func (o *Origin) Set(b *heap.Block) {
	o.Stack, o.PyStack, o.Tag, o.Thread = b.Stack, b.PyStack, b.Tag, b.Thread
	o.call, o.Device, o.kind, o.account = b.Call, b.Device, b.Mem, b.Account
}

// is reports whether two origins are the same. The fields that differ most often are compared first.
func (o *Origin) is(p *Origin) bool {
	return o.PyStack == p.PyStack && o.Stack == p.Stack && o.Tag == p.Tag && o.Thread == p.Thread && o.Name == p.Name &&
		o.Module == p.Module &&
		o.SizeClass == p.SizeClass && o.Place == p.Place && o.Category == p.Category && o.Lifetime == p.Lifetime &&
		o.call == p.call && o.Device == p.Device && o.kind == p.kind && o.account == p.account
}

func (o *Origin) hash() uint64 {
	const odd1, odd2, odd3 = 0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9
	high, low := bits.Mul64((uint64(o.Stack)|uint64(o.PyStack)<<32)^odd1, (uint64(o.Tag)|uint64(o.Thread)<<32)^odd2)
	rest := uint64(uint16(o.Device)) | uint64(o.call)<<16 | uint64(o.kind)<<32 | uint64(o.account)<<40 |
		uint64(o.SizeClass)<<48
	named := uint64(o.Name)<<32 | uint64(o.Category)<<56 | uint64(o.Lifetime)<<63 | uint64(o.Module)
	named ^= uint64(o.Place) * odd1
	h := (high ^ low ^ rest ^ bits.RotateLeft64(named, 32)*odd2) * odd3
	return h ^ h>>32
}

// Counts sum up blocks over the whole run.
type Counts struct {
	Allocs, Frees, AllocBytes uint64
}

func (c *Counts) Add(d Counts) {
	c.Allocs += d.Allocs
	c.Frees += d.Frees
	c.AllocBytes += d.AllocBytes
}

// Cell holds the numbers of all blocks of one origin. Every row of every grouping is a sum of cells, computed on
// demand: the cost of an event does not depend on the groupings.
type Cell struct {
	Origin
	Hidden bool       // the filters leave it out
	Alike  heap.Alike // its blocks

	// The fields that iterations need, each plus one; 0: not known yet.
	phase        uint8
	Class        uint16
	ModuleNumber uint32

	// Hints: cells used after this one the last time, plus one; by now they may have another origin.
	next  uint32 // for the next new block
	Moved uint32 // when a block moved away

	TimelineKey uint32 // number of its key in a timeline plus one; 0: not looked up yet

	owner uint32 // number of its call stack in the account's HeldSeries plus one; 0: not looked up yet

	heap.Share
	Request requestShares // of the share, a framework's bytes beyond the requests; zero for others
	Counts
}

// idle reports whether only a cell's counts matter: it has no block that is live or was live at the peak.
func (v *Cell) idle(epoch uint64) bool { return v.Allocs == v.Frees && v.Peak(epoch) == 0 }

// CellsKept is how many cells may be idle before they are retired. Programs that name every iteration keep creating
// origins.
const CellsKept = 1 << 16

// Cells are the cells of one account. Numbers are used again once a cell was retired.
type Cells struct {
	List   []Cell
	slots  []uint32 // by hash; number plus one, 0 free
	unused []uint32
	// cells that may be in use before the idle ones are retired; 0: CellsKept
	Keep    int
	limit   int                             // number of cells at which idle ones are next retired
	retired map[*Grouping]map[uint64]Counts // nil until cells were retired
	last    uint32                          // cell of the latest block
	// by number: the certain part of the cell's share, see losses; nil while everything is
	Certain    []heap.Share
	anyCertain bool // something is
}

func (c *Cells) inUse() int { return len(c.List) - len(c.unused) }

// find returns the number of an origin's cell, ok=false if it has none.
func (c *Cells) find(o *Origin) (n uint32, ok bool) {
	if len(c.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(c.slots) - 1)
	for i := o.hash() & mask; ; i = (i + 1) & mask {
		n := c.slots[i]
		if n == 0 {
			return 0, false
		}
		if c.List[n-1].Origin == *o {
			return n - 1, true
		}
	}
}

// FindNext is find for the origin of a new block. Programs run in loops: the cell that followed the latest one the last
// time is tried first.
func (c *Cells) FindNext(o *Origin) (n uint32, ok bool) {
	if int(c.last) >= len(c.List) {
		return 0, false
	}
	n, ok = c.FindFrom(o, &c.List[c.last].next)
	if ok {
		c.last = n
	}
	return n, ok
}

// FindFrom is find with a hint: the number of a likely cell, plus one, which it updates.
func (c *Cells) FindFrom(o *Origin, likely *uint32) (n uint32, ok bool) {
	if k := *likely; k != 0 && c.List[k-1].is(o) {
		return k - 1, true
	}
	if n, ok = c.find(o); ok {
		*likely = n + 1
	}
	return n, ok
}

// Add makes a cell for an origin that has none.
func (c *Cells) Add(o *Origin) uint32 {
	n := uint32(len(c.List))
	if last := len(c.unused) - 1; last >= 0 {
		n, c.unused = c.unused[last], c.unused[:last]
		c.List[n] = Cell{Origin: *o}
	} else {
		c.List = append(c.List, Cell{Origin: *o})
	}
	if 2*c.inUse() > len(c.slots) {
		c.index(max(64, 2*len(c.slots)))
	} else {
		c.enter(n)
	}
	return n
}

// index rebuilds the hash table.
func (c *Cells) index(size int) {
	c.slots = make([]uint32, size)
	gone := make([]bool, len(c.List))
	for _, n := range c.unused {
		gone[n] = true
	}
	for n := range c.List {
		if !gone[n] {
			c.enter(uint32(n))
		}
	}
}

func (c *Cells) enter(n uint32) {
	mask := uint64(len(c.slots) - 1)
	i := c.List[n].hash() & mask
	for c.slots[i] != 0 {
		i = (i + 1) & mask
	}
	c.slots[i] = n + 1
}

// Retire drops idle cells and adds their counts to each of the groupings, so that memory is bounded by the live blocks,
// the blocks of the peak and the keys of each grouping. The combinations of two groupings are lost. It runs again when
// the number of cells has doubled.
func (c *Cells) Retire(r *Resolver, by []*Grouping, epoch uint64) {
	least := cmp.Or(c.Keep, CellsKept)
	if c.inUse() < max(least, c.limit) {
		return
	}
	if c.retired == nil {
		c.retired = make(map[*Grouping]map[uint64]Counts, len(by))
		for _, g := range by {
			c.retired[g] = make(map[uint64]Counts)
		}
	}
	for n := range c.List {
		v := &c.List[n]
		if v.Origin == (Origin{}) && v.Hidden || !v.idle(epoch) { // retired before, or still needed
			continue
		}
		for _, g := range by {
			if v.Allocs > 0 {
				id, sums := g.ID(r, &v.Origin), c.retired[g]
				sum := sums[id]
				sum.Add(v.Counts)
				sums[id] = sum
			}
		}
		*v = Cell{Hidden: true}
		if n < len(c.Certain) {
			c.Certain[n] = heap.Share{}
		}
		c.unused = append(c.unused, uint32(n))
	}
	c.index(len(c.slots))
	c.limit = 2 * c.inUse()
}

// Retired returns the counts of cells that were retired, by the identifiers of one of the groupings passed to Retire,
// or of one that they cover: see Counting.
func (c *Cells) Retired(g *Grouping) map[uint64]Counts {
	if g.ByStack {
		g = &ByStack
	}
	return c.retired[g]
}

// Held is a part of what was live at some moment.
type Held struct {
	Origin
	Bytes   uint64
	Certain uint64 // the certain part of them

	// of them, a framework's bytes beyond the requests, and bytes of blocks whose request is not known
	Rest, Unknown uint64
}

// Holding lists what the selected cells hold, nil for all, by the given measures of a share and of its certain part.
func (c *Cells) Holding(of func(v *Cell) bool, bytes, sure func(*heap.Share) uint64) []Held {
	list := []Held{}
	for n := range c.List {
		v := &c.List[n]
		h := Held{Origin: v.Origin, Bytes: bytes(&v.Share)}
		if h.Bytes == 0 || of != nil && !of(v) {
			continue
		}
		h.Rest, h.Unknown = bytes(&v.Request.rest), bytes(&v.Request.unknown)
		h.Certain = h.Bytes
		if c.Certain != nil {
			h.Certain = c.CertainOf(n, sure)
		}
		list = append(list, h)
	}
	return list
}

// Restart resets the counts to the live blocks.
func (c *Cells) Restart() {
	for n := range c.List {
		v := &c.List[n]
		v.Counts = Counts{Allocs: v.Allocs - v.Frees, AllocBytes: v.Current}
	}
	c.retired = nil
}
