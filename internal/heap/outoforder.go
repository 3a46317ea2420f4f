package heap

import (
	"slices"

	"memtrace/cuda"
	"memtrace/trace"
)

const (
	// maxUnmatched bounds how many addresses are remembered at which something late may still come: an allocation whose
	// free was seen, a free whose block was displaced.
	maxUnmatched = 1 << 14
	// keptDisplacements is how many times of displaced blocks are remembered: as many as threads may be inside an
	// allocation when recording ends.
	keptDisplacements = 512
	// maxNodes bounds how many addresses of graph nodes are remembered after their nodes ended.
	maxNodes = 1 << 20
)

// memoryPlace is an address in its space.
type memoryPlace struct {
	addr  uint64
	space Space
}

// unmatchedFrees are the frees at one place that no block was live for.
type unmatchedFrees struct {
	seq   uint64 // highest order number
	count uint64
}

// reordering pairs allocations and frees whose events come in another order than they happened.
type reordering struct {
	health    *HeapHealth
	unmatched map[memoryPlace]unmatchedFrees // frees without a block
	expected  map[memoryPlace]uint64         // frees that may still come: of blocks closed without theirs
	nodes     AddrMap                        // addresses that ever were a graph node's
	displaced []int64                        // when blocks were displaced, the latest times
}

func newReordering(health *HeapHealth) reordering {
	return reordering{health: health, unmatched: make(map[memoryPlace]unmatchedFrees),
		expected: make(map[memoryPlace]uint64)}
}

// noteNode remembers the address of a graph's node. When there are too many, all are forgotten: only frees of ended
// nodes lose their meaning.
func (r *reordering) noteNode(e *trace.Event) {
	if e.Mem != cuda.MemoryGraph {
		return
	}
	if r.nodes.used >= maxNodes {
		r.nodes = AddrMap{}
	}
	r.nodes.Put(e.Addr, 0)
	if e.Flags&trace.FlagLate != 0 {
		r.dropUnmatched(memoryPlace{e.Addr, SpaceGraph})
		r.dropUnmatched(memoryPlace{e.Addr, SpaceDevice})
	}
}

func (r *reordering) wasNode(addr uint64) bool {
	_, was := r.nodes.Get(addr)
	return was
}

// displace takes in that a block was closed because its address was handed out again. Its free may still come.
func (r *reordering) displace(key memoryPlace, time int64) {
	r.health.Displaced++
	if len(r.displaced) == keptDisplacements {
		r.displaced = slices.Delete(r.displaced, 0, keptDisplacements/2)
	}
	r.displaced = append(r.displaced, time)
	r.expectFree(key)
}

// expectFree remembers that the free of a closed block may still come. When there are too many, all are forgotten: only
// recent ones can still come.
func (r *reordering) expectFree(key memoryPlace) {
	if len(r.expected) >= maxUnmatched {
		clear(r.expected)
	}
	r.expected[key]++
}

// countLateFree takes in a free that came after its block had been closed without it.
func (r *reordering) countLateFree(key memoryPlace) {
	r.health.LateFrees++
	if r.expected[key] > 1 {
		r.expected[key]--
	} else {
		delete(r.expected, key)
	}
}

// isExpected reports whether a free that finds no block is one that comes late, and counts it as that.
func (r *reordering) isExpected(key memoryPlace) bool {
	if r.expected[key] > 0 {
		r.countLateFree(key)
		return true
	}
	return false
}

// keepUnmatched keeps an unmatched free. When there are too many, all are forgotten: only recent ones can still be
// adopted.
func (r *reordering) keepUnmatched(key memoryPlace, seq uint64) {
	r.health.UnmatchedFrees++
	if len(r.unmatched) >= maxUnmatched {
		clear(r.unmatched)
	}
	frees := r.unmatched[key]
	r.unmatched[key] = unmatchedFrees{seq: max(frees.seq, seq), count: frees.count + 1}
}

// dropUnmatched takes back that the frees at a place are unmatched.
func (r *reordering) dropUnmatched(key memoryPlace) {
	r.health.UnmatchedFrees -= r.unmatched[key].count
	delete(r.unmatched, key)
}

// matchFree looks for the free of a late allocation; programs free nodes of graphs as they free other memory.
func (r *reordering) matchFree(e *trace.Event, at Space) bool {
	return r.matchFreeAt(memoryPlace{e.Addr, at}, e.Seq) || at == SpaceGraph &&
		r.matchFreeAt(memoryPlace{e.Addr, SpaceDevice}, e.Seq)
}

// matchFreeAt reports whether an unmatched free came after an allocation with the given order number, so that the
// allocation's block has ended. One such free then counts as matched.
func (r *reordering) matchFreeAt(key memoryPlace, seq uint64) bool {
	frees, known := r.unmatched[key]
	if !known || frees.seq < seq {
		return false
	}
	frees.count--
	if frees.count == 0 {
		delete(r.unmatched, key)
	} else {
		r.unmatched[key] = frees
	}
	r.health.UnmatchedFrees--
	return true
}
