package heap

import "memtrace/trace"

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

// dropUnmatched takes back that the frees at a place are unmatched.
func (h *Heap) dropUnmatched(key memoryPlace) {
	h.health.UnmatchedFrees -= h.unmatched[key].count
	delete(h.unmatched, key)
}

// hasEnded reports whether the block of a late allocation has ended already: its free was seen, or its owner has ended
// since.
func (h *Heap) hasEnded(e *trace.Event, at Space, taken bool) bool {
	if !taken && h.matchFree(e, at) {
		return true
	}
	owner := OwnerOf(e)
	return owner.Handle != 0 && h.objects.endedSince(owner, e.Seq)
}

// expectFree remembers that the free of a closed block may still come. When there are too many, all are forgotten: only
// recent ones can still come.
func (h *Heap) expectFree(key memoryPlace) {
	if len(h.expectedFrees) >= maxUnmatched {
		clear(h.expectedFrees)
	}
	h.expectedFrees[key]++
}

// countLateFree takes in a free that came after its block had been closed without it.
func (h *Heap) countLateFree(key memoryPlace) {
	h.health.LateFrees++
	if h.expectedFrees[key] > 1 {
		h.expectedFrees[key]--
	} else {
		delete(h.expectedFrees, key)
	}
}

func (h *Heap) lateAlloc(e *trace.Event, account Account) {
	h.health.LateAllocs++
	h.noteNode(e)
	var b Block
	FillBlock(&b, e, account)
	h.observer.LateAlloc(&b, e)
}

// matchFreeAt reports whether an unmatched free came after an allocation with the given order number, so that the
// allocation's block has ended. One such free then counts as matched.
func (h *Heap) matchFreeAt(key memoryPlace, seq uint64) bool {
	frees, known := h.unmatched[key]
	if !known || frees.seq < seq {
		return false
	}
	frees.count--
	if frees.count == 0 {
		delete(h.unmatched, key)
	} else {
		h.unmatched[key] = frees
	}
	h.health.UnmatchedFrees--
	return true
}

// matchFree looks for the free of a late allocation; programs free nodes of graphs as they free other memory.
func (h *Heap) matchFree(e *trace.Event, at Space) bool {
	return h.matchFreeAt(memoryPlace{e.Addr, at}, e.Seq) || at == SpaceGraph &&
		h.matchFreeAt(memoryPlace{e.Addr, SpaceDevice}, e.Seq)
}

// keepUnmatched keeps an unmatched free. When there are too many, all are forgotten: only recent ones can still be
// adopted.
func (h *Heap) keepUnmatched(key memoryPlace, seq uint64) {
	if len(h.unmatched) >= maxUnmatched {
		clear(h.unmatched)
	}
	frees := h.unmatched[key]
	h.unmatched[key] = unmatchedFrees{seq: max(frees.seq, seq), count: frees.count + 1}
}
