package profile

import (
	"memtrace/internal/heap"
)

const (
	heldBins     = 128     // maximum number of points of a series; then neighbours are joined
	heldBinFirst = 1       // allocations and frees of the first points
	heldOwners   = 1 << 16 // call stacks with a series of their own; later ones share one
)

// HeldSeries keeps, for every call stack of every account, the minimum that its blocks held during each of up to
// heldBins intervals of the run. Memory that a loop allocates and frees again does not show in that; memory that it
// leaves allocated does. Intervals are counted in allocations and frees of all accounts, so that an idle program adds
// nothing, the result does not depend on the machine's speed, and an account that stopped growing is seen to have
// stopped. What an allocator takes from the driver for blocks that are counted themselves does not count: how often it
// does that depends on its settings.
type HeldSeries struct {
	owners []heldOwner
	index  map[heldKey]uint32 // number of its owner

	perBin uint64  // allocations and frees per interval
	count  uint64  // of the open one
	paused bool    // no interval is open
	Ends   []int64 // when each closed interval ended
	Freed  []uint64

	LastAlloc  int    // the interval of the last allocation: teardown follows
	LastTimeNS int64  // when that was
	allocs     uint64 // so far
	events     uint64 // the same and frees
}

type heldKey struct {
	account heap.Account
	id      uint64
}

// heldOwner is one call stack.
type heldOwner struct {
	heldKey
	live uint64
	low  uint64 // of the open interval
	bin  int    // the interval that low belongs to
	lows []uint64

	blocks   uint32 // live ones
	allocs   uint32 // so far
	last     uint64 // bytes held at the allocation of number lastAt
	lastOf   uint32 // blocks, the same
	lastAt   uint64
	closedAt uint64 // number of the event that closed its latest block
}

// HeldStack is the memory that one call stack held over time.
type HeldStack struct {
	ID     uint64   // of the call stack
	Lows   []uint64 // the minimum of each interval before teardown, and the value at the last allocation
	Allocs uint32
	Blocks uint32 // at the last allocation
	Live   uint64 // bytes at the end of the trace
	Left   uint32 // blocks then
	// number of the event that closed its latest block, comparable between stacks
	ClosedAt uint64
}

func NewHeldSeries() *HeldSeries {
	return &HeldSeries{index: make(map[heldKey]uint32), perBin: heldBinFirst, Freed: []uint64{0}}
}

// owner returns the number of a call stack's owner plus one.
func (h *HeldSeries) owner(account heap.Account, id uint64) uint32 {
	key := heldKey{account, id}
	n, known := h.index[key]
	if !known {
		if n = uint32(len(h.owners)); n >= heldOwners {
			key.id = 0 // of an account's later call stacks
			if n, known = h.index[key]; known {
				return n + 1
			}
			n = uint32(len(h.owners))
		}
		h.index[key] = n
		h.owners = append(h.owners, heldOwner{heldKey: key, bin: len(h.Ends)})
	}
	return n + 1
}

// OwnerOf is owner for a cell, which caches it.
func (h *HeldSeries) OwnerOf(v *Cell) uint32 {
	if v.owner != 0 {
		return v.owner
	}
	return h.newOwner(v)
}

// newOwner is apart from OwnerOf so that OwnerOf can be inlined.
func (h *HeldSeries) newOwner(v *Cell) uint32 {
	v.owner = h.owner(v.account, StackID(nil, &v.Origin))
	return v.owner
}

// OwnerOfBlock is owner for a block of an account without cells.
func (h *HeldSeries) OwnerOfBlock(b *heap.Block) uint32 {
	o := OriginOf(b)
	return h.owner(b.Account, StackID(nil, &o))
}

func (h *HeldSeries) Opened(owner uint32, size uint64, time int64) {
	h.Reserved(owner, size, time)
	h.passed(time)
}

// Reserved is Opened for what an allocator takes from the driver.
func (h *HeldSeries) Reserved(owner uint32, size uint64, time int64) {
	o, bin := &h.owners[owner-1], len(h.Ends)
	if o.bin != bin {
		o.reach(bin)
	}
	o.live += size
	o.blocks++
	o.allocs++
	h.LastAlloc, h.LastTimeNS = bin, time
	h.allocs++
}

func (h *HeldSeries) Closed(owner uint32, size uint64, time int64) {
	h.Returned(owner, size)
	h.Freed[len(h.Freed)-1] += size
	h.passed(time)
}

// Returned is Closed for what an allocator gives back to the driver.
func (h *HeldSeries) Returned(owner uint32, size uint64) {
	o, bin := &h.owners[owner-1], len(h.Ends)
	if o.bin != bin {
		o.reach(bin)
	}
	if o.lastAt != h.allocs {
		o.last, o.lastOf, o.lastAt = o.live, o.blocks, h.allocs
	}
	h.events++
	o.closedAt = h.events
	o.live -= min(size, o.live)
	o.blocks -= min(1, o.blocks)
	o.low = min(o.low, o.live)
}

// passed counts an allocation or a free.
func (h *HeldSeries) passed(time int64) {
	if h.count++; h.count >= h.perBin {
		h.next(time)
	}
}

// Pause stops the series, or restarts it: earlier points are dropped, except the memory held.
func (h *HeldSeries) Pause(paused bool) {
	h.paused = paused
	h.Ends, h.Freed, h.count, h.LastAlloc = nil, []uint64{0}, 0, 0
	for i := range h.owners {
		o := &h.owners[i]
		o.low, o.bin, o.lows = o.live, 0, nil
	}
}

// next begins the next interval.
func (h *HeldSeries) next(time int64) {
	if h.count = 0; h.paused {
		return
	}
	h.Ends = append(h.Ends, time)
	h.Freed = append(h.Freed, 0)
	if len(h.Ends) == heldBins {
		h.join()
	}
}

// reach closes the intervals up to bin: the owner's memory did not change in those without its events.
func (o *heldOwner) reach(bin int) {
	if o.bin == bin {
		return
	}
	if o.lows == nil && o.low == 0 && o.live == 0 { // most call stacks hold nothing from one interval to the next
		o.bin = bin
		return
	}
	if o.lows == nil {
		o.lows = make([]uint64, 0, heldBins)
	}
	for len(o.lows) < o.bin {
		o.lows = append(o.lows, 0)
	}
	for o.lows = append(o.lows, o.low); len(o.lows) < bin; {
		o.lows = append(o.lows, o.live)
	}
	o.low, o.bin = o.live, bin
}

// join joins every two intervals.
func (h *HeldSeries) join() {
	n := len(h.Ends)
	for i := range h.owners {
		o := &h.owners[i]
		o.reach(n)
		for j := range len(o.lows) / 2 {
			o.lows[j] = min(o.lows[2*j], o.lows[2*j+1])
		}
		o.lows, o.bin = o.lows[:len(o.lows)/2], n/2
	}
	for j := range n / 2 {
		h.Ends[j] = h.Ends[2*j+1]
		h.Freed[j] = h.Freed[2*j] + h.Freed[2*j+1]
	}
	h.Ends = h.Ends[:n/2]
	h.Freed = append(h.Freed[:n/2], 0)
	h.LastAlloc /= 2
	h.perBin *= 2
}

// Points is the number of intervals before teardown.
func (h *HeldSeries) Points() int { return min(h.LastAlloc, len(h.Ends)) }

// Of returns all call stacks of an account. Those that never held anything over a whole interval have no Lows, unless
// they do at the last allocation.
func (h *HeldSeries) Of(account heap.Account) (list []HeldStack) {
	n := h.Points()
	for i := range h.owners {
		o := &h.owners[i]
		if o.account != account {
			continue
		}
		o.reach(len(h.Ends))
		v := HeldStack{ID: o.id, Allocs: o.allocs, Blocks: o.blocks, Live: o.live, Left: o.blocks, ClosedAt: o.closedAt}
		last := o.live
		if o.lastAt == h.allocs {
			last, v.Blocks = o.last, o.lastOf
		}
		if o.lows != nil || last > 0 {
			v.Lows = make([]uint64, n+1) // before its first low nothing was held over an interval
			copy(v.Lows[:n], o.lows)
			v.Lows[n] = last
		}
		list = append(list, v)
	}
	return list
}

// Restart restarts the series with the memory held now.
func (h *HeldSeries) Restart() {
	for i := range h.owners {
		o := &h.owners[i]
		*o = heldOwner{heldKey: o.heldKey, live: o.live, low: o.live, blocks: o.blocks}
	}
	h.perBin, h.count, h.Ends, h.Freed, h.LastAlloc = heldBinFirst, 0, nil, []uint64{0}, 0
}
