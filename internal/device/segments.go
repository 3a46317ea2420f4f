package device

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Segments collect the ranges of addresses that libraries took from the driver. Which library is the framework's
// allocator is known only later. Time is counted in events of the framework's level, as many as came before. Before the
// first one nothing is collected: a program without a framework may hold millions of blocks. Nil collects nothing.
type Segments struct {
	memory  *heap.Heap
	events  func() uint64
	begun   bool
	list    []segment
	ofBlock map[uint32]int // by block id: the live segment of plain memory
	mapped  map[uint64]int // by address: the live segment of mapped memory
}

// segment is one of them while the trace is read.
type segment struct {
	born, died uint64
	addr, size uint64
	library    uint32
	seq        uint64 // of the handle that is mapped
	device     int16
	joins      bool
	ended      bool
}

// NewSegments returns none yet, of a heap, with what counts the events of the framework's level.
func NewSegments(memory *heap.Heap, events func() uint64) *Segments {
	return &Segments{memory: memory, events: events, ofBlock: make(map[uint32]int), mapped: make(map[uint64]int)}
}

// begin takes in what there is before the first event of the framework's level; holder returns who holds a block.
func (h *Segments) begin(holder func(*heap.Block) uint32) {
	h.begun = true
	type taken struct {
		segment
		block  uint32
		opened uint64 // order number
	}
	var list []taken
	h.memory.Each(func(id uint32, b *heap.Block) {
		if b.Account == heap.AccountDriver && b.Mem != cuda.MemoryVMM {
			list = append(list, taken{segment{addr: b.Addr, size: b.Size, device: b.Device, library: holder(b)}, id,
				b.Seq})
		}
	})
	h.memory.Mappings.Each(func(addr, size uint64, b *heap.Block) {
		_, seq, _ := h.memory.Mappings.Size(addr)
		list = append(list, taken{segment{addr: addr, size: size, device: b.Device, seq: b.Seq, joins: true,
			library: holder(b)}, 0, seq})
	})
	slices.SortFunc(list, func(a, b taken) int { return cmp.Compare(a.opened, b.opened) })
	for i := range list {
		if s := &list[i]; s.joins {
			h.mapped[s.addr] = h.open(s.segment)
		} else {
			h.ofBlock[s.block] = h.open(s.segment)
		}
	}
}

func (h *Segments) open(s segment) int {
	h.list = append(h.list, s)
	return len(h.list) - 1
}

func (h *Segments) end(at int) {
	h.list[at].died, h.list[at].ended = h.events(), true
}

// opened takes in new driver memory. A VMM handle is no range of addresses: see follow.
func (h *Segments) opened(id uint32, b *heap.Block, libraries *callstack.Libraries) {
	if h != nil && h.begun && b.Mem != cuda.MemoryVMM {
		h.ofBlock[id] = h.open(segment{born: h.events(), addr: b.Addr, size: b.Size, device: b.Device,
			library: libraries.Of(b.Stack)})
	}
}

// closed takes in the end of driver memory.
func (h *Segments) closed(id uint32) {
	if h == nil {
		return
	}
	if at, known := h.ofBlock[id]; known {
		h.end(at)
		delete(h.ofBlock, id)
	}
}

// follow compares the mappings that are known with those of the heap after an event that may have changed them.
func (h *Segments) follow(e *trace.Event, libraries *callstack.Libraries) {
	if h == nil || !h.begun || e.Status != 0 {
		return
	}
	switch e.Kind {
	case trace.EventMap:
		h.mappedAt(e, libraries)
	case trace.EventUnmap, trace.EventDestroy:
		for addr, at := range h.mapped {
			if e.Kind == trace.EventUnmap && (addr < e.Addr || addr-e.Addr >= max(e.Size, 1)) {
				continue
			}
			if _, _, is := h.memory.Mappings.Size(addr); !is {
				h.end(at)
				delete(h.mapped, addr)
			}
		}
	}
}

func (h *Segments) mappedAt(e *trace.Event, libraries *callstack.Libraries) {
	b := h.memory.Mappings.Behind(e.Addr) // it knows its device, which the thread that maps it need not
	size, seq, is := h.memory.Mappings.Size(e.Addr)
	if !is || seq != e.Seq || b == nil || e.Addr>>63 != 0 {
		return
	}
	if at, known := h.mapped[e.Addr]; known {
		h.end(at)
	}
	h.mapped[e.Addr] = h.open(segment{born: h.events(), addr: e.Addr, size: size, device: b.Device, seq: b.Seq,
		library: libraries.Of(b.Stack), joins: true})
}

// claimed takes in that driver memory is held by a pool of the program's own from its beginning on: what it was before
// the pool handed out its first block is of no interest.
func (h *Segments) claimed(id uint32, b *heap.Block, holder uint32) {
	if h == nil {
		return
	}
	if at, known := h.ofBlock[id]; known {
		h.list[at].library = holder
	}
	for _, at := range h.mapped {
		if s := &h.list[at]; s.seq == b.Seq {
			s.library = holder
		}
	}
}

// Of returns the segments of those who report blocks, in the numbers that kept events have among all of the level; nil
// has none.
func (h *Segments) Of(holdings *Holdings, events []uint64) []report.HistorySegment {
	if h == nil {
		return nil
	}
	behind := func(event uint64) uint32 {
		n, _ := slices.BinarySearch(events, event+1)
		return uint32(n)
	}
	var list []report.HistorySegment
	for i := range h.list {
		s := &h.list[i]
		if !holdings.Reports(s.library) {
			continue
		}
		v := report.HistorySegment{Born: behind(s.born), Died: uint32(len(events)), Addr: s.addr, Size: s.size,
			Device: s.device, Joins: s.joins}
		if s.ended {
			v.Died = behind(s.died)
		}
		if v.Born < v.Died || !s.ended {
			list = append(list, v)
		}
	}
	return list
}
