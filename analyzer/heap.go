package analyzer

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// maxBlockBytes is more than any address space holds. A larger size is damage; counting it would drown every other number.
const maxBlockBytes = 1 << 57

// maxOrphans bounds how many addresses are remembered at which something late may still come: an allocation whose free was seen, a free whose block was
// displaced.
const maxOrphans = 1 << 14

// Block is a live allocation. Observers may keep its id, never the pointer: blocks move when the heap grows and are reused after Closed. A block fills
// one cache line, which the speed of the replay rests on.
type Block struct {
	Addr    uint64 // address; for VMM memory the handle
	Size    uint64 // bytes
	Seq     uint64 // order number of the allocation
	Time    int64  // nanoseconds since the trace's base
	Stack   trace.StackID
	PyStack trace.StackID
	Tag     trace.StringID
	Thread  trace.ThreadID
	Call    cuda.API // the runtime call where there was one, else the driver's or the framework's
	Device  int16
	Account Account

	released bool   // VMM: the handle was given back
	hidden   bool   // belongs to the observer: the filters leave the block out
	ordinal  uint32 // belongs to the observer: number of the allocation within its thread
	link     uint32 // VMM: how many mappings keep the memory alive; while unused: the next unused block, plus one
}

// Observer is told what happens to blocks. b is valid during the call only; id is the block's number until Closed returns.
type Observer interface {
	// Opened reports a new live block.
	Opened(id uint32, b *Block, e *trace.Event)
	// Closed reports that a block's memory is gone; e is the event that ended it.
	Closed(id uint32, b *Block, e *trace.Event)
	// Elapsed reports a late allocation whose block had already ended when its event came: it counts, but it was never seen live.
	Elapsed(b *Block, e *trace.Event)
	// Refused reports an allocation that failed.
	Refused(e *trace.Event)
}

// HeapHealth counts what the replay had to repair.
type HeapHealth struct {
	UnmatchedFrees   uint64 // frees of memory that no event allocated
	UnmatchedMaps    uint64 // mappings of VMM handles that no event created
	UnmatchedUnmaps  uint64 // unmappings of addresses that no event mapped
	Displaced        uint64 // blocks closed because their address was handed out again before their free was seen
	LateFrees        uint64 // frees that came after their block had been displaced
	LateAllocs       uint64 // allocations that came after their block had ended
	FailedFrees      uint64 // frees that CUDA refused; the block lived on
	ImplausibleSizes uint64 // allocations left out because their size exceeds any address space
}

// Heap is the state machine of live memory. Its rules:
//
//   - An allocation at an address that is live in the same space means that the earlier block's free is late: the earlier block closes there and then.
//     If the late one is the allocation itself (its order number is the lower one), its block has elapsed and the live one stays.
//   - A free whose order number is below that of the block live at its address belongs to an earlier, displaced block: it changes nothing. Nor does a late
//     free where no block is live but one was displaced.
//   - A free that finds no block is counted. If its allocation comes late, the pair is put together again.
//   - A refused allocation changes nothing; a refused free leaves its block live. Address 0 is never a block: freeing it is legal and does nothing.
//   - The memory behind a VMM handle lives until the handle is released and its last mapping has ended, in whatever order.
type Heap struct {
	observer Observer
	blocks   []Block
	free     uint32 // first unused block, plus one
	live     [spaceCount]addrMap
	maps     mappings
	orphans  map[place]unmatched // frees without a block
	owed     map[place]uint64    // displaced blocks whose free has not come
	health   HeapHealth
}

// place is an address in its space.
type place struct {
	addr  uint64
	space space
}

// unmatched are the frees at one place that no block was live for.
type unmatched struct {
	seq   uint64 // highest order number
	count uint64
}

// NewHeap returns an empty heap that reports to observer.
func NewHeap(observer Observer) *Heap {
	return &Heap{observer: observer, orphans: make(map[place]unmatched), owed: make(map[place]uint64)}
}

// Health returns what had to be repaired so far.
func (h *Heap) Health() HeapHealth { return h.health }

// Apply replays one event. Kinds that do not concern memory are ignored. In steady state it allocates nothing.
func (h *Heap) Apply(e *trace.Event) {
	switch e.Kind {
	case trace.EventAlloc:
		h.alloc(e)
	case trace.EventFree:
		h.release(e)
	case trace.EventMap:
		h.mapHandle(e)
	case trace.EventUnmap:
		h.unmap(e)
	}
}

func (h *Heap) alloc(e *trace.Event) {
	account := accountOf(e)
	switch {
	case account == AccountNone:
		return
	case e.Status != 0:
		h.observer.Refused(e)
		return
	case e.Addr == 0:
		return
	case e.Size > maxBlockBytes:
		h.health.ImplausibleSizes++
		return
	}
	at := spaceOf(e)
	live := &h.live[at]
	live.reserve()
	slot := live.find(e.Addr)
	if old := live.slots[slot]; old.addr != 0 {
		if h.blocks[old.block].Seq > e.Seq {
			h.adopt(place{e.Addr, at}, e.Seq)
			h.elapse(e, account)
			return
		}
		h.displace(place{e.Addr, at}, old.block, e)
	} else {
		if e.Flags&trace.FlagLate != 0 && h.adopt(place{e.Addr, at}, e.Seq) {
			h.elapse(e, account)
			return
		}
		live.used++
	}
	id := h.take()
	live.slots[slot] = addrSlot{e.Addr, id}
	b := &h.blocks[id]
	fillBlock(b, e, account)
	h.observer.Opened(id, b, e)
}

// displace closes the block at an address that was handed out again; the caller lets the address lead to the new one.
func (h *Heap) displace(key place, id uint32, e *trace.Event) {
	h.health.Displaced++
	if len(h.owed) >= maxOrphans {
		clear(h.owed)
	}
	h.owed[key]++
	h.end(id, e)
}

// settle takes in a free that came after its block had been displaced.
func (h *Heap) settle(key place) {
	h.health.LateFrees++
	if h.owed[key] > 1 {
		h.owed[key]--
	} else {
		delete(h.owed, key)
	}
}

// fillBlock takes over from the event what reports will ask of the block.
func fillBlock(b *Block, e *trace.Event, account Account) {
	b.Addr, b.Size, b.Seq, b.Time = e.Addr, e.Size, e.Seq, e.Time
	b.Stack, b.PyStack, b.Tag, b.Thread = e.Stack, e.PyStack, e.Tag, e.Thread
	b.Call, b.Device, b.Account = callOf(e), e.Device, account
	b.link, b.released = 0, false
}

// callOf names the call as the program made it.
func callOf(e *trace.Event) cuda.API {
	if e.Runtime != cuda.APINone {
		return e.Runtime
	}
	return e.API
}

func (h *Heap) elapse(e *trace.Event, account Account) {
	h.health.LateAllocs++
	var b Block
	fillBlock(&b, e, account)
	h.observer.Elapsed(&b, e)
}

// adopt reports whether an unmatched free came after an allocation with the given order number, so that the allocation's block has ended. One such free
// then counts as matched.
func (h *Heap) adopt(key place, seq uint64) bool {
	frees, known := h.orphans[key]
	if !known || frees.seq < seq {
		return false
	}
	frees.count--
	if frees.count == 0 {
		delete(h.orphans, key)
	} else {
		h.orphans[key] = frees
	}
	h.health.UnmatchedFrees--
	return true
}

func (h *Heap) release(e *trace.Event) {
	switch {
	case accountOf(e) == AccountNone, e.Addr == 0:
		return
	case e.Status != 0:
		h.health.FailedFrees++
		return
	}
	at := spaceOf(e)
	live := &h.live[at]
	live.reserve()
	slot := live.find(e.Addr)
	found := live.slots[slot]
	known := found.addr != 0
	switch {
	case known && h.blocks[found.block].Seq <= e.Seq:
		live.remove(slot)
		h.end(found.block, e)
	case known, e.Flags&trace.FlagLate != 0 && h.owed[place{e.Addr, at}] > 0:
		h.settle(place{e.Addr, at})
	default:
		h.health.UnmatchedFrees++
		h.remember(place{e.Addr, at}, e.Seq)
	}
}

// remember keeps an unmatched free. When there are too many, all are forgotten: only recent ones can still be adopted.
func (h *Heap) remember(key place, seq uint64) {
	if len(h.orphans) >= maxOrphans {
		clear(h.orphans)
	}
	frees := h.orphans[key]
	h.orphans[key] = unmatched{seq: max(frees.seq, seq), count: frees.count + 1}
}

// end closes a block that its address no longer leads to; VMM memory waits for its last mapping.
func (h *Heap) end(id uint32, e *trace.Event) {
	b := &h.blocks[id]
	if b.link > 0 {
		b.released = true
		return
	}
	h.observer.Closed(id, b, e)
	h.giveBack(id)
}

// take returns an unused block.
func (h *Heap) take() uint32 {
	if h.free == 0 {
		h.blocks = append(h.blocks, Block{})
		return uint32(len(h.blocks) - 1)
	}
	id := h.free - 1
	h.free = h.blocks[id].link
	return id
}

func (h *Heap) giveBack(id uint32) {
	b := &h.blocks[id]
	b.Account, b.link = AccountNone, h.free
	h.free = id + 1
}
