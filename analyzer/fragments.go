package analyzer

import (
	"cmp"
	"slices"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/cuda"
)

// span is the range of addresses [start, end).
type span struct {
	start, end uint64
	joins      bool // one allocation may reach from this range into the next one
}

// fragmentsOf finds the gaps that blocks leave in segments. Both are put in order. Segments that join and touch are one; blocks outside of all segments, and
// what is covered twice, change nothing.
func fragmentsOf(segments, blocks []span) report.Fragments {
	byStart := func(a, b span) int { return cmp.Compare(a.start, b.start) }
	slices.SortFunc(segments, byStart)
	slices.SortFunc(blocks, byStart)
	var f report.Fragments
	for _, s := range joined(segments) {
		at, used := s.start, false
		for len(blocks) > 0 && blocks[0].start < s.end {
			b := blocks[0]
			if b.end > s.start {
				used = true
				f.Piece(at, min(b.start, s.end))
				at = max(at, b.end)
			}
			if b.end > s.end {
				break // it may reach into the next segment, if the records are wrong
			}
			blocks = blocks[1:]
		}
		f.Piece(at, s.end)
		if !used {
			f.WholeFreeBytes += s.end - s.start
		}
	}
	return f
}

// joined merges ordered segments that overlap, or that touch where both may be crossed.
func joined(segments []span) []span {
	var list []span
	for _, s := range segments {
		if n := len(list); n > 0 && (s.start < list[n-1].end || s.start == list[n-1].end && s.joins && list[n-1].joins) {
			list[n-1].end = max(list[n-1].end, s.end)
			continue
		}
		list = append(list, s)
	}
	return list
}

// fragments looks at what the framework's allocator holds on a device: its segments are the driver memory of the library that makes the framework's reports.
func (c *collector) fragments(index int16) report.Fragments {
	var segments, blocks []span
	h := c.heap
	ours := func(b *heap.Block) bool {
		return b.Account == heap.AccountDriver && b.Device == index && c.resolver.libraries.Of(b.Stack) == c.holding.library
	}
	h.Each(func(_ uint32, b *heap.Block) {
		switch {
		case b.Account == heap.AccountFramework && b.Device == index:
			blocks = append(blocks, span{start: b.Addr, end: b.Addr + b.Size})
		case ours(b) && b.Mem != cuda.MemoryVMM: // a handle's address is no address
			segments = append(segments, span{start: b.Addr, end: b.Addr + b.Size})
		}
	})
	h.EachMapping(func(addr, size uint64, b *heap.Block) {
		if ours(b) {
			segments = append(segments, span{start: addr, end: addr + size, joins: true})
		}
	})
	return fragmentsOf(segments, blocks)
}
