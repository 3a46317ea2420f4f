package profile

import (
	"cmp"
	"math/bits"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/cuda"
	"memtrace/trace"
)

// Origin is what a block is grouped and filtered by: who asked for it, and where.
type Origin struct {
	Stack   trace.StackID
	PyStack trace.StackID
	Tag     trace.StringID
	Thread  trace.ThreadID
	Name    trace.StringID // what the framework calls the block; it says so after the block was made
	Module  trace.StringID // innermost one that asked for the block, by the names that were known then
	call    cuda.API
	Device  int16

	// number of the interval between the boundaries that rules name; 0 without any; only rules look at it
	SizeClass uint16
	kind      cuda.MemoryKind // the same
	account   heap.Account    // the same
	Category  trace.Category  // of the name
	Lifetime  lifetime
	Place     uint16 // number of its stream and its pool
}

// OriginOf leaves the size class to those who know the boundaries, and the place to those who number places.
func OriginOf(b *heap.Block) (o Origin) {
	o.Set(b)
	return o
}

// Set is OriginOf for an origin of which the rest is zero. Its fields are written one by one, as they are compared:
// processors wait for wide pieces that were just written in narrow ones.
func (o *Origin) Set(b *heap.Block) {
	o.Stack, o.PyStack, o.Tag, o.Thread = b.Stack, b.PyStack, b.Tag, b.Thread
	o.call, o.Device, o.kind, o.account = b.Call, b.Device, b.Mem, b.Account
}

// is reports whether two origins are the same. What differs most often comes first.
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

// Cell holds the numbers of all blocks of one origin. Every row of every grouping is a sum of cells, made when somebody
// asks: what an event costs does not depend on what it will be grouped by.
type Cell struct {
	Origin
	Hidden bool       // the filters leave it out
	Alike  heap.Alike // its blocks

	// What the iterations ask for, each plus one; 0: not known yet.
	phase        uint8
	Class        uint16
	ModuleNumber uint32

	// Cells that came up before where this one did, plus one; they may be another origin's by now.
	next  uint32 // behind it
	Moved uint32 // when a block moved away

	TimelineKey uint32 // number of its key in a timeline plus one; 0: not looked up yet

	owner uint32 // number of its call stack in the account's HeldSeries plus one; 0: not looked up yet

	meter.Share
	Request requestShares // of the share, what a framework's blocks have beyond the requests; zero for others
	Counts
}

// idle reports whether a cell matters for nothing but its counts: no block of it is live or stood at the peak.
func (v *Cell) idle(epoch uint64) bool { return v.Allocs == v.Frees && v.Peak(epoch) == 0 }

// CellsKept is how many cells may lie idle before they are retired. Programs that name every iteration make ever new
// origins.
const CellsKept = 1 << 16

// Cells are the cells of one account. Numbers are used again once a cell was retired.
type Cells struct {
	List   []Cell
	slots  []uint32 // by hash; number plus one, 0 free
	unused []uint32
	// cells that may be in use before the idle ones are looked for; 0: CellsKept
	Keep    int
	limit   int                             // cells in use at which the idle ones are looked for next
	retired map[*Grouping]map[uint64]Counts // nil until cells were retired
	last    uint32                          // cell of the latest block
	// by number: what of the cell's share is certain, see losses; nil while everything is
	Sure    []meter.Share
	vouched bool // something is
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

// FindNext is find for the origin of a new block. Programs run in loops: the cell that came behind the latest one the
// last time is looked at first.
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

// FindFrom is find where the number of a likely cell, plus one, is known; it keeps the one that it finds.
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

// index makes the hash table anew.
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

// Retire drops idle cells and leaves their counts with each of the groupings, so that memory is bounded by what is
// live, what stood at the peak and the keys of each grouping. What two groupings have in common is lost. It looks again
// when twice as many are in use as were left over.
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
		if n < len(c.Sure) {
			c.Sure[n] = meter.Share{}
		}
		c.unused = append(c.unused, uint32(n))
	}
	c.index(len(c.slots))
	c.limit = 2 * c.inUse()
}

// Retired returns the counts of cells that were retired, by the identifiers of one of the groupings that Retire was
// given, or of one that they answer for: see Counting.
func (c *Cells) Retired(g *Grouping) map[uint64]Counts {
	if g.ByStack {
		g = &ByStack
	}
	return c.retired[g]
}

// Held is a part of what was live at some moment.
type Held struct {
	Origin
	Bytes uint64
	Sure  uint64 // of them, what is certain

	// of them, what a framework's blocks have beyond the requests, and what is in blocks whose request is not known
	Rest, Unknown uint64
}

// Holding lists what the cells hold that of lets pass, nil all, by the given measures of a share and of what is
// certain of it.
func (c *Cells) Holding(of func(v *Cell) bool, bytes, sure func(*meter.Share) uint64) []Held {
	list := []Held{}
	for n := range c.List {
		v := &c.List[n]
		h := Held{Origin: v.Origin, Bytes: bytes(&v.Share)}
		if h.Bytes == 0 || of != nil && !of(v) {
			continue
		}
		h.Rest, h.Unknown = bytes(&v.Request.rest), bytes(&v.Request.unknown)
		h.Sure = h.Bytes
		if c.Sure != nil {
			h.Sure = c.SureOf(n, sure)
		}
		list = append(list, h)
	}
	return list
}

// Restart forgets the blocks that are gone: counts begin with those that are live.
func (c *Cells) Restart() {
	for n := range c.List {
		v := &c.List[n]
		v.Counts = Counts{Allocs: v.Allocs - v.Frees, AllocBytes: v.Current}
	}
	c.retired = nil
}
