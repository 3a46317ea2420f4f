package profile

const (
	heldBins     = 128     // at most so many points of a series; then neighbours are joined
	heldBinFirst = 16      // allocations and frees of the first points
	heldOwners   = 1 << 16 // call stacks with a series of their own; those that come up later share one
)

// HeldSeries keeps, for every call stack of one account, the least that its blocks held during each of up to heldBins
// stretches of the run. What a loop allocates and frees again does not show in that; what it leaves behind does.
// Stretches are counted in allocations and frees, so a program that waits adds nothing, and the result does not depend
// on how fast the machine is.
type HeldSeries struct {
	owners []heldOwner
	index  map[uint64]uint32 // by call stack: number of its owner

	perBin uint64  // allocations and frees per stretch
	count  uint64  // of the open one
	paused bool    // no stretch is open
	Ends   []int64 // when each closed stretch ended
	Freed  []uint64

	LastAlloc int // the stretch of the last allocation: what comes behind is teardown
}

// heldOwner is one call stack.
type heldOwner struct {
	id   uint64 // of the call stack
	live uint64
	low  uint64 // of the open stretch
	bin  int    // the stretch that low belongs to
	lows []uint64
}

func NewHeldSeries() *HeldSeries {
	return &HeldSeries{index: make(map[uint64]uint32), perBin: heldBinFirst, Freed: []uint64{0}}
}

// owner returns the number of a call stack's owner plus one.
func (h *HeldSeries) owner(id uint64) uint32 {
	n, known := h.index[id]
	if !known {
		if len(h.owners) > heldOwners {
			return heldOwners + 1
		}
		if n = uint32(len(h.owners)); n == heldOwners {
			id = 0
		}
		h.index[id] = n
		h.owners = append(h.owners, heldOwner{id: id, bin: len(h.Ends)})
	}
	return n + 1
}

// OwnerOf is owner for a cell, which remembers it.
func (h *HeldSeries) OwnerOf(v *Cell) uint32 {
	if v.owner != 0 {
		return v.owner
	}
	return h.newOwner(v)
}

// newOwner is apart from OwnerOf so that OwnerOf can be inlined.
func (h *HeldSeries) newOwner(v *Cell) uint32 {
	v.owner = h.owner(StackID(nil, &v.Origin))
	return v.owner
}

func (h *HeldSeries) Opened(owner uint32, size uint64, time int64) {
	o, bin := &h.owners[owner-1], len(h.Ends)
	if o.bin != bin {
		o.reach(bin)
	}
	o.live += size
	h.LastAlloc = bin
	if h.count++; h.count >= h.perBin {
		h.next(time)
	}
}

func (h *HeldSeries) Closed(owner uint32, size uint64, time int64) {
	o, bin := &h.owners[owner-1], len(h.Ends)
	if o.bin != bin {
		o.reach(bin)
	}
	o.live -= min(size, o.live)
	o.low = min(o.low, o.live)
	h.Freed[len(h.Freed)-1] += size
	if h.count++; h.count >= h.perBin {
		h.next(time)
	}
}

// Pause keeps the series from going on, or lets it begin anew: what happened before is forgotten, but for what is held.
func (h *HeldSeries) Pause(paused bool) {
	h.paused = paused
	h.Ends, h.Freed, h.count, h.LastAlloc = nil, []uint64{0}, 0, 0
	for i := range h.owners {
		o := &h.owners[i]
		o.low, o.bin, o.lows = o.live, 0, nil
	}
}

// next begins the next stretch.
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

// reach closes the stretches up to bin: the owner held the same in all of those that it had no part in.
func (o *heldOwner) reach(bin int) {
	if o.bin == bin {
		return
	}
	if o.lows == nil && o.low == 0 && o.live == 0 { // most call stacks hold nothing from one stretch to the next
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

// join makes one stretch of every two.
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

// Series returns, for every owner that ever held something over a whole stretch, what it held at the least in each of
// the stretches before teardown.
func (h *HeldSeries) Series() (ids []uint64, lows [][]uint64) {
	n := min(h.LastAlloc, len(h.Ends))
	for i := range h.owners {
		o := &h.owners[i]
		o.reach(len(h.Ends))
		if o.lows == nil {
			continue
		}
		for len(o.lows) < n { // one that was freed before the last stretches
			o.lows = append(o.lows, o.live)
		}
		ids, lows = append(ids, o.id), append(lows, o.lows[:n])
	}
	return ids, lows
}

// Restart begins the series anew, with what is held now.
func (h *HeldSeries) Restart() {
	for i := range h.owners {
		o := &h.owners[i]
		*o = heldOwner{id: o.id, live: o.live, low: o.live}
	}
	h.perBin, h.count, h.Ends, h.Freed, h.LastAlloc = heldBinFirst, 0, nil, []uint64{0}, 0
}
