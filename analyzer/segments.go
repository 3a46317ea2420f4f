package analyzer

import (
	"slices"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// segmentHistory collects the ranges of addresses that libraries took from the driver. Which library is the
// framework's allocator is known only later.
type segmentHistory struct {
	list    []pastSegment
	ofBlock map[uint32]int // by block id: the live segment of plain memory
	mapped  map[uint64]int // by address: the live segment of mapped memory
}

// pastSegment is a segment while the trace is read.
type pastSegment struct {
	born, died uint64 // events of the framework's level that came before
	addr, size uint64
	library    uint32
	device     int16
	joins      bool
	ended      bool
}

func newSegmentHistory() *segmentHistory {
	return &segmentHistory{ofBlock: make(map[uint32]int), mapped: make(map[uint64]int)}
}

func (h *segmentHistory) open(s pastSegment) int {
	h.list = append(h.list, s)
	return len(h.list) - 1
}

func (h *segmentHistory) end(at int, event uint64) {
	h.list[at].died, h.list[at].ended = event, true
}

// segmentOpened takes in new driver memory. A VMM handle is no range of addresses: see followMappings.
func (c *collector) segmentOpened(id uint32, b *heap.Block) {
	if b.Account != heap.AccountDriver || b.Mem == cuda.MemoryVMM {
		return
	}
	c.segments.ofBlock[id] = c.segments.open(pastSegment{born: c.past[heap.AccountFramework].events, addr: b.Addr, size: b.Size, device: b.Device, library: c.resolver.Libraries.Of(b.Stack)})
}

func (c *collector) segmentClosed(id uint32, b *heap.Block) {
	if b.Account != heap.AccountDriver {
		return
	}
	if at, known := c.segments.ofBlock[id]; known {
		c.segments.end(at, c.past[heap.AccountFramework].events)
		delete(c.segments.ofBlock, id)
	}
}

// followMappings compares the mappings that are known with those of the heap behind an event that may have changed
// them.
func (c *collector) followMappings(e *trace.Event) {
	h := c.segments
	if h == nil || e.Status != 0 {
		return
	}
	events := c.past[heap.AccountFramework].events
	if e.Kind != trace.EventMap {
		for addr, at := range h.mapped {
			if e.Kind == trace.EventUnmap && (addr < e.Addr || addr-e.Addr >= max(e.Size, 1)) {
				continue
			}
			if _, _, is := c.heap.Mapped(addr); !is {
				h.end(at, events)
				delete(h.mapped, addr)
			}
		}
		return
	}
	b := c.heap.Behind(e.Addr) // it knows its device, which the thread that maps it need not
	if size, seq, is := c.heap.Mapped(e.Addr); is && seq == e.Seq && b != nil && e.Addr>>63 == 0 {
		if at, known := h.mapped[e.Addr]; known {
			h.end(at, events)
		}
		h.mapped[e.Addr] = h.open(pastSegment{born: events, addr: e.Addr, size: size, device: b.Device, library: c.resolver.Libraries.Of(b.Stack), joins: true})
	}
}

// placed returns a library's segments, in the numbers that kept events have: see placeBlocks.
func (h *segmentHistory) placed(library uint32, events []uint64) []report.HistorySegment {
	behind := func(event uint64) uint32 {
		n, _ := slices.BinarySearch(events, event+1)
		return uint32(n)
	}
	var list []report.HistorySegment
	for i := range h.list {
		s := &h.list[i]
		if s.library != library {
			continue
		}
		v := report.HistorySegment{Born: behind(s.born), Died: uint32(len(events)), Addr: s.addr, Size: s.size, Device: s.device, Joins: s.joins}
		if s.ended {
			v.Died = behind(s.died)
		}
		if v.Born < v.Died || !s.ended {
			list = append(list, v)
		}
	}
	return list
}
