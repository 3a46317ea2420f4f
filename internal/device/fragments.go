package device

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
)

// Span is the range of addresses [start, end).
type Span struct {
	Start, End uint64
	Joins      bool // one allocation may reach from this range into the next one

	seq  uint64 // order number of the segment's allocation
	pool uint32 // private pool that the segment belongs to; 0: the common one
}

// Cache is what lies between the blocks of a framework's allocator.
type Cache struct {
	All     report.Fragments
	Common  report.Fragments     // without the private pools, of which nobody else may use anything
	Private []report.PrivatePool // in the order of their numbers
}

// fragmentsOf finds the gaps that blocks leave in segments. Both are put in order. Segments that join and touch are
// one; blocks outside of all segments, and what is covered twice, change nothing.
func fragmentsOf(segments, blocks []Span) report.Fragments {
	byStart := func(a, b Span) int { return cmp.Compare(a.Start, b.Start) }
	slices.SortFunc(segments, byStart)
	slices.SortFunc(blocks, byStart)
	var f report.Fragments
	for _, s := range joined(segments) {
		at, used := s.Start, false
		for len(blocks) > 0 && blocks[0].Start < s.End {
			b := blocks[0]
			if b.End > s.Start {
				used = true
				f.Piece(at, min(b.Start, s.End))
				at = max(at, b.End)
			}
			if b.End > s.End {
				break // it may reach into the next segment, if the records are wrong
			}
			blocks = blocks[1:]
		}
		f.Piece(at, s.End)
		if !used {
			f.WholeFreeBytes += s.End - s.Start
		}
	}
	return f
}

// joined merges ordered segments that overlap, or that touch where both may be crossed.
func joined(segments []Span) []Span {
	var list []Span
	for _, s := range segments {
		if n := len(list); n > 0 && (s.Start < list[n-1].End || s.Start == list[n-1].End && s.Joins &&
			list[n-1].Joins) {
			list[n-1].End = max(list[n-1].End, s.End)
			continue
		}
		list = append(list, s)
	}
	return list
}

// Fragments looks at what the framework's allocator holds on a device: its segments are the driver memory of the
// library that makes the framework's reports.
func (s *State) Fragments(h *heap.Heap, libraries *callstack.Libraries, index int16) Cache {
	var segments, blocks []Span
	ours := func(b *heap.Block) bool {
		return b.Account == heap.AccountDriver && b.Device == index && s.Holdings.Reports(s.HolderOf(b, libraries))
	}
	h.Each(func(_ uint32, b *heap.Block) {
		switch {
		case b.Account == heap.AccountFramework && b.Device == index:
			blocks = append(blocks, Span{Start: b.Addr, End: b.Addr + b.Size})
		case ours(b) && b.Mem != cuda.MemoryVMM: // a handle's address is no address
			segments = append(segments, Span{Start: b.Addr, End: b.Addr + b.Size, seq: b.Seq})
		}
	})
	h.Mappings.Each(func(addr, size uint64, b *heap.Block) {
		if ours(b) {
			segments = append(segments, Span{Start: addr, End: addr + size, Joins: true, seq: b.Seq})
		}
	})
	s.Pools.sort(index, segments)
	c := Cache{All: fragmentsOf(segments, blocks), Private: private(segments, blocks)}
	if c.Common = c.All; len(c.Private) > 0 {
		c.Common = fragmentsOf(slices.DeleteFunc(segments, func(s Span) bool { return s.pool != 0 }), blocks)
	}
	return c
}
