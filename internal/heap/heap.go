package heap

import (
	"memtrace/cuda"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// MaxBlockBytes is more than any address space holds. A larger size is damage; counting it would drown every other
// number.
const MaxBlockBytes = 1 << 57

// Block is a live allocation. Observers may keep its id, never the pointer: it is a copy, and a place for others soon.
type Block struct {
	Addr    uint64 // address; for VMM memory the handle
	Size    uint64 // bytes
	Seq     uint64 // order number of the allocation
	Time    int64  // nanoseconds since the trace's base; 0 in a packed heap
	Stack   trace.StackID
	PyStack trace.StackID
	Tag     trace.StringID
	Thread  trace.ThreadID
	Call    cuda.API // the runtime call where there was one, else the driver's or the framework's
	Device  int16
	Account Account
	Mem     cuda.MemoryKind

	state  blockState
	Hidden bool // belongs to the observer: the filters leave the block out
	// handles: how many mappings keep the memory alive; other driver memory: its owner's number; while unused: the next
	// unused block, plus one
	link uint32
}

// blockState are facts about a block that few blocks have.
type blockState uint8

const (
	blockReleased blockState = 1 << iota // the handle was given back, mappings keep the memory
	blockShared                          // there are references beyond the first, see Heap.references
	// an imported handle before its first mapping, which tells its size: the observer does not know it yet
	blockUnsized
	blockPooled  // of a pool of the program's own
	blockClaimed // driver memory out of which such a pool cuts its blocks
	blockFramed  // driver memory in which such blocks lie inside of a framework's
)

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

	UnmatchedReferences uint64 // further references to VMM handles that no event created
	ImplicitFrees       uint64 // blocks that ended with their context, graph or module; no fault
}

// Heap is the state machine of live memory. Its rules:
//
//   - An allocation at an address that is live in the same space means that the earlier block's free is late: the
//     earlier block closes there and then. If the late one is the allocation itself (its order number is the lower
//     one), its block has elapsed and the live one stays.
//   - A free whose order number is below that of the block live at its address belongs to an earlier, displaced block:
//     it changes nothing. Nor does a late free where no block is live but one was displaced.
//   - A free that finds no block is counted. If its allocation comes late, the pair is put together again.
//   - A refused allocation changes nothing; a refused free leaves its block live. Address 0 is never a block: freeing
//     it is legal and does nothing.
//   - The memory behind a VMM handle lives until the handle is released and its last mapping has ended, in whatever
//     order. References are counted: each takes a release of its own.
//   - The size of an imported handle is that of its first mapping; until then there is no block. Memory of other
//     processes that is opened again at the same address takes a close for each opening.
//   - With a context, a graph or a module ends the memory that it owns, see destroy. Only blocks older than the event
//     end: a destruction that comes late tells of an earlier object of the same handle. A late allocation whose owner
//     has ended since has elapsed.
//   - A free of a device address where nothing is live may mean a graph's node. An address that ever was a node's is
//     freed once per launch, so such frees are never unmatched.
type Heap struct {
	observer        Observer
	room            *offheap.Room
	blocks          blockTable
	live            [SpaceCount]blockIndex
	releasedHandles blockIndex // released handles whose memory is still mapped
	references      references
	order           reordering
	owners          owners
	ranges          addressRanges
	health          HeapHealth
	lossy           bool // records were lost

	Framework FrameworkBlocks
	Mappings  Mappings
	Objects   Objects
}

// NewHeap returns an empty heap that reports to observer. Its tables stand in a room, which may be nil, and belongs to
// the caller.
func NewHeap(observer Observer, room *offheap.Room) *Heap {
	h := newHeap(observer, room, true)
	h.owners.places = offheap.NewColumn[neighbours](room)
	return h
}

// NewPackedHeap returns an empty heap for the replay inside a recorded program, which takes as little memory for its
// blocks as it can, at most so many bytes of it outside of Go's heap, where most is: it forgets when allocations
// happened. Once it is short of room it goes on in Go's heap, but is to be given up soon. It is to be freed.
func NewPackedHeap(observer Observer, most int64) *Heap {
	h := newHeap(observer, offheap.NewRoom(most), false)
	h.owners.counted = true
	return h
}

func newHeap(observer Observer, room *offheap.Room, timed bool) *Heap {
	h := &Heap{observer: observer, room: room, Objects: newObjects(), blocks: newBlockTable(room, timed)}
	h.references = references{blocks: &h.blocks, count: make(map[uint32]uint64)}
	h.order = newReordering(&h.health)
	h.owners.blocks, h.Mappings.blocks = &h.blocks, &h.blocks
	h.Framework = FrameworkBlocks{live: &h.live[SpaceFramework], blocks: &h.blocks}
	h.releasedHandles.blocks, h.releasedHandles.room = &h.blocks, room
	for at := range h.live {
		h.live[at].blocks, h.live[at].room = &h.blocks, room
	}
	return h
}

// Free gives back the memory of a packed heap, which is not to be used any more.
func (h *Heap) Free() { h.room.Free() }

// Health returns what had to be repaired so far.
func (h *Heap) Health() HeapHealth { return h.health }

// DisplacedSince returns how many of the blocks displaced lately were so after a time.
func (h *Heap) DisplacedSince(time int64) (n uint64) {
	for _, at := range h.order.displaced {
		if at > time {
			n++
		}
	}
	return n
}

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
	case trace.EventCreate:
		h.Objects.begin(e)
	case trace.EventDestroy:
		h.destroy(e)
	}
}

func (h *Heap) alloc(e *trace.Event) {
	account := AccountOf(e)
	switch {
	case account == AccountNone:
		return
	case e.Flags&trace.FlagReference != 0:
		h.refer(e)
		return
	case e.Status != 0:
		h.observer.Refused(e)
		return
	case e.Addr == 0:
		return
	case e.Size > MaxBlockBytes:
		h.health.ImplausibleSizes++
		return
	}
	at := SpaceOf(e)
	live := &h.live[at]
	live.reserve(h.blocks.count)
	slot, old, taken := live.find(e.Addr)
	switch {
	case taken && h.repeats(old, e):
		return
	case taken && h.blocks.seq(old) > e.Seq:
		h.order.matchFree(e, at)
		h.lateAlloc(e, account)
		return
	case e.Flags&trace.FlagLate != 0 && h.hasEnded(e, at, taken):
		h.lateAlloc(e, account)
		return
	case taken:
		h.displace(memoryPlace{e.Addr, at}, old, e)
	default:
		live.used++
	}
	if at == SpacePool {
		account = h.enterPool(e, account)
	}
	id := h.blocks.take(e.Addr)
	live.set(slot, e.Addr, id)
	b := h.blocks.next()
	FillBlock(b, e, account)
	h.ranges.addBlock(id, b, at)
	if e.Level != cuda.LevelDriver && at != SpacePool || h.begin(id, b, e) {
		h.observer.Opened(id, b, e)
	}
	h.blocks.put(id, b)
}

// hasEnded reports whether the block of a late allocation has ended already: its free was seen, or its owner has ended
// since.
func (h *Heap) hasEnded(e *trace.Event, at Space, taken bool) bool {
	if !taken && h.order.matchFree(e, at) {
		return true
	}
	owner := OwnerOf(e)
	return owner.Handle != 0 && h.Objects.endedSince(owner, e.Seq)
}

func (h *Heap) lateAlloc(e *trace.Event, account Account) {
	h.health.LateAllocs++
	h.order.noteNode(e)
	var b Block
	FillBlock(&b, e, account)
	h.observer.LateAlloc(&b, e)
}

// begin does what only blocks with an owner need, and reports whether their size is known.
func (h *Heap) begin(id uint32, b *Block, e *trace.Event) bool {
	if key := OwnerOf(e); key.Handle != 0 {
		b.link = h.owners.add(id, key)
	}
	h.order.noteNode(e)
	if e.Mem == cuda.MemoryImported && e.Size == 0 {
		b.state = blockUnsized
		return false
	}
	return true
}

// displace closes the block at an address that was handed out again; the caller lets the address lead to the new one.
func (h *Heap) displace(key memoryPlace, id uint32, e *trace.Event) {
	h.order.displace(key, e.Time)
	h.references.dropAll(id)
	h.end(id, e)
}

// FillBlock takes over from the event what reports will ask of the block.
func FillBlock(b *Block, e *trace.Event, account Account) {
	b.Addr, b.Size, b.Seq, b.Time = e.Addr, e.Size, e.Seq, e.Time
	b.Stack, b.PyStack, b.Tag, b.Thread = e.Stack, e.PyStack, e.Tag, e.Thread
	b.Call, b.Device, b.Account, b.Mem = CallOf(e), e.Device, account, e.Mem
	b.link, b.state, b.Hidden = 0, 0, false
	if isOwnPool(e) {
		b.state = blockPooled
	}
}

func (h *Heap) release(e *trace.Event) {
	switch {
	case AccountOf(e) == AccountNone, e.Addr == 0:
		return
	case e.Status != 0:
		h.health.FailedFrees++
		return
	}
	at := SpaceOf(e)
	live := &h.live[at]
	live.reserve(0)
	slot, id, found := live.find(e.Addr)
	if !found {
		h.releaseMissing(at, e)
		return
	}
	switch p := h.blocks.packed.At(id); {
	case p.seq > e.Seq:
		h.order.countLateFree(memoryPlace{e.Addr, at})
	case p.state()&blockShared != 0:
		h.references.drop(id)
	default:
		live.remove(slot)
		h.end(id, e)
	}
}

// releaseMissing takes in a free that finds no block in its space.
func (h *Heap) releaseMissing(at Space, e *trace.Event) {
	if at == SpaceDevice {
		if id, isNode := h.live[SpaceGraph].get(e.Addr); isNode && h.blocks.seq(id) <= e.Seq {
			h.live[SpaceGraph].take(e.Addr)
			h.end(id, e)
			return
		} else if isNode {
			h.order.countLateFree(memoryPlace{e.Addr, SpaceGraph})
			return
		}
	}
	key := memoryPlace{e.Addr, at}
	late := e.Flags&trace.FlagLate != 0
	switch {
	case late && h.order.isExpected(key):
	case late && at == SpaceDevice && h.order.isExpected(memoryPlace{e.Addr, SpaceGraph}):
	case (at == SpaceDevice || at == SpaceGraph) && h.order.wasNode(e.Addr):
	default:
		h.order.keepUnmatched(key, e.Seq)
	}
}

// end closes a block that its address no longer leads to; memory behind a handle waits for its last mapping.
func (h *Heap) end(id uint32, e *trace.Event) {
	b := h.blocks.at(id)
	if b.link|uint32(b.state) != 0 && !h.detach(id, b) {
		return
	}
	h.observer.Closed(id, b, e)
	h.blocks.recycle(id)
}

// detach does what only few blocks need before they close, and reports whether the observer is to be told.
func (h *Heap) detach(id uint32, b *Block) bool {
	switch {
	case b.link == 0:
	case driverSpace(b.Mem) == SpaceHandle:
		b.state |= blockReleased
		h.blocks.put(id, b)
		h.releasedHandles.put(b.Addr, id)
		return false
	default:
		h.owners.remove(id, b.link)
	}
	if b.state&blockUnsized != 0 {
		h.blocks.recycle(id)
		return false
	}
	return true
}
