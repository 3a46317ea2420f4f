package training

import (
	"encoding/binary"
	"math"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// BlockNames are the names of a framework's blocks, found in a reading of their own, so that filters know them when a
// block begins, and iterations that end before a name is said.
//
// In a run of hours millions of blocks are named, gradients of every few steps most of all, but with few different
// names. So a name is kept in four bytes or so, in pages by order number of the allocation. Blocks begin in the order
// of these numbers, or nearly: the page that they are in is laid out as an array, and the next block costs one look
// into it.
type BlockNames struct {
	room  *offheap.Room
	block heap.Block // that begins or ends on the fast path
	alike heap.Alike // all of those
	heap  *heap.Heap // of the framework's blocks alone: no other is named for good
	total total
	named heap.Locator
	of    offheap.Column[nameOfBlock] // by block id

	distinct []blockName
	number   map[blockName]uint32
	// by order number / namePage: varints of order number % namePage and of the name's number plus one; of two names
	// for one block the later one holds
	pages   map[uint64][]byte
	open    uint64   // number of the page that is laid out, plus one
	laidOut []uint32 // its names' numbers plus one by order number % namePage, 0 none
}

type blockName struct {
	Category trace.Category
	Name     trace.StringID
}

// nameOfBlock is the name of the block with an order number; what was there before it has another.
type nameOfBlock struct {
	seq  uint64
	name blockName
}

// namePage is how many order numbers a page covers: as an array it takes 64 KiB.
const namePage = 1 << 14

func newBlockNames() *BlockNames {
	n := &BlockNames{room: offheap.NewRoom(math.MaxInt64), number: make(map[blockName]uint32),
		pages: make(map[uint64][]byte)}
	n.of, n.heap = offheap.NewColumn[nameOfBlock](n.room), heap.NewHeap(&n.total, n.room)
	return n
}

// total follows what all blocks of the framework hold.
type total struct {
	heap.NoopObserver
	live, peak, seq uint64 // seq: order number of the allocation that made the peak
}

func (t *total) add(bytes, seq uint64) {
	if t.live += bytes; t.live > t.peak {
		t.peak, t.seq = t.live, seq
	}
}

// Opened implements heap.Observer.
func (t *total) Opened(_ uint32, b *heap.Block, _ *trace.Event) { t.add(b.Size, b.Seq) }

// Closed implements heap.Observer.
func (t *total) Closed(_ uint32, b *heap.Block, _ *trace.Event) { t.live -= b.Size }

// PeakSeq is the order number of the allocation that made the peak; 0 without one.
func (n *BlockNames) PeakSeq() uint64 { return n.total.seq }

// event takes in an event of the reading ahead.
func (n *BlockNames) event(e *trace.Event) {
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree:
		if e.Level == cuda.LevelFramework {
			n.heap.Apply(e)
		}
	case trace.EventName:
		if e.Addr != 0 && n.heap.Framework.Any() {
			n.name(e)
		}
	}
}

// fastPath takes in an allocation or a free of a framework's block by the fast path of the heap. It does nothing but
// return false if the event is not one of that.
func (n *BlockNames) fastPath(kind trace.EventKind, seq, addr, size uint64) bool {
	switch {
	case addr == 0:
		return false
	case kind == trace.EventFree:
		id, ok := n.heap.Framework.Close(addr, seq, &n.block)
		if ok {
			n.total.live -= n.block.Size
			n.heap.Framework.Recycle(id)
		}
		return ok
	case kind != trace.EventAlloc || size > heap.MaxBlockBytes:
		return false
	}
	id, ok := n.heap.Framework.Open(addr)
	if ok {
		n.block = heap.Block{Account: heap.AccountFramework, Seq: seq, Size: size}
		n.heap.Framework.Keep(id, &n.block, &n.alike)
		n.total.add(size, seq)
	}
	return ok
}

func (n *BlockNames) name(e *trace.Event) {
	id, ok := n.named.Find(n.heap, e.Addr)
	if !ok {
		return
	}
	b := n.heap.Block(id)
	if b.Account != heap.AccountFramework || b.Seq > e.Seq {
		return
	}
	known := n.of.Slot(id)
	if known.seq != b.Seq {
		*known = nameOfBlock{seq: b.Seq}
	}
	if !KeepsName(known.name.Category, e.Category, false) {
		known.name = blockName{e.Category, e.Name}
		n.keep(b.Seq, known.name)
	}
}

func (n *BlockNames) keep(seq uint64, name blockName) {
	k, known := n.number[name]
	if !known {
		n.distinct = append(n.distinct, name)
		k = uint32(len(n.distinct))
		n.number[name] = k
	}
	page := seq / namePage
	n.pages[page] = binary.AppendUvarint(binary.AppendUvarint(n.pages[page], seq%namePage), uint64(k))
}

// Of returns the name of the block whose allocation has an order number. A nil n knows no names.
func (n *BlockNames) Of(seq uint64) (name blockName, ok bool) {
	if n == nil {
		return blockName{}, false
	}
	if n.open != seq/namePage+1 {
		n.layOut(seq / namePage)
	}
	k := n.laidOut[seq%namePage]
	if k == 0 {
		return blockName{}, false
	}
	return n.distinct[k-1], true
}

// readEverything is called at the end of the reading ahead: what is needed from then on are the names alone.
func (n *BlockNames) readEverything() {
	n.room.Free()
	n.heap, n.named, n.of, n.number = nil, heap.Locator{}, offheap.Column[nameOfBlock]{}, nil
}

func (n *BlockNames) layOut(page uint64) {
	if n.laidOut == nil {
		n.laidOut = make([]uint32, namePage)
	}
	clear(n.laidOut)
	for list := n.pages[page]; len(list) > 0; {
		at, width := binary.Uvarint(list)
		name, more := binary.Uvarint(list[width:])
		n.laidOut[at] = uint32(name)
		list = list[width+more:]
	}
	n.open = page + 1
}

// KeepsName reports whether a block keeps the name that it has when it is given another one. Whole: the name is that of
// a whole block of the driver.
func KeepsName(old, next trace.Category, whole bool) bool {
	switch {
	case next == trace.CategoryFree:
		return !whole || old == trace.CategoryNone
	case whole || old == trace.CategoryNone || old == trace.CategoryFree:
		return false
	}
	return old <= next // several tensors in one block: the first name of the first category stays
}
