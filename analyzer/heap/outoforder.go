package heap

import "memtrace/trace"

// place is an address in its space.
type place struct {
	addr  uint64
	space Space
}

// unmatched are the frees at one place that no block was live for.
type unmatched struct {
	seq   uint64 // highest order number
	count uint64
}

// forgive takes back that the frees at a place are unmatched.
func (h *Heap) forgive(key place) {
	h.health.UnmatchedFrees -= h.orphans[key].count
	delete(h.orphans, key)
}

// hasEnded reports whether the block of a late allocation has ended already: its free was seen, or its owner has ended since.
func (h *Heap) hasEnded(e *trace.Event, at Space, taken bool) bool {
	if !taken && h.adoptFree(e, at) {
		return true
	}
	owner := OwnerOf(e)
	return owner.Handle != 0 && h.objects.endedSince(owner, e.Seq)
}

// owe remembers that the free of a closed block may still come. When there are too many, all are forgotten: only recent ones can still come.
func (h *Heap) owe(key place) {
	if len(h.owed) >= maxOrphans {
		clear(h.owed)
	}
	h.owed[key]++
}

// settle takes in a free that came after its block had been closed without it.
func (h *Heap) settle(key place) {
	h.health.LateFrees++
	if h.owed[key] > 1 {
		h.owed[key]--
	} else {
		delete(h.owed, key)
	}
}

func (h *Heap) elapse(e *trace.Event, account Account) {
	h.health.LateAllocs++
	h.noteNode(e)
	var b Block
	FillBlock(&b, e, account)
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

// adoptFree looks for the free of a late allocation; programs free nodes of graphs as they free other memory.
func (h *Heap) adoptFree(e *trace.Event, at Space) bool {
	return h.adopt(place{e.Addr, at}, e.Seq) || at == SpaceGraph && h.adopt(place{e.Addr, SpaceDevice}, e.Seq)
}

// remember keeps an unmatched free. When there are too many, all are forgotten: only recent ones can still be adopted.
func (h *Heap) remember(key place, seq uint64) {
	if len(h.orphans) >= maxOrphans {
		clear(h.orphans)
	}
	frees := h.orphans[key]
	h.orphans[key] = unmatched{seq: max(frees.seq, seq), count: frees.count + 1}
}
