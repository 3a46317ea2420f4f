package heap

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// references counts the references to blocks beyond the first, by number.
type references struct {
	blocks *blockTable
	count  map[uint32]uint64
}

func (r *references) add(id uint32) {
	b := r.blocks.at(id)
	b.state |= blockShared
	r.blocks.put(id, b)
	r.count[id]++
}

// drop takes one away from a block that has some.
func (r *references) drop(id uint32) {
	if r.count[id]--; r.count[id] == 0 {
		r.dropAll(id)
	}
}

func (r *references) dropAll(id uint32) {
	if b := r.blocks.at(id); b.state&blockShared != 0 {
		b.state &^= blockShared
		r.blocks.put(id, b)
		delete(r.count, id)
	}
}

// refer takes in one more reference to the memory behind a VMM handle. A handle that was released while mappings kept
// its memory is valid again. A failed attempt is how programs ask whether memory has a handle, so it says nothing.
func (h *Heap) refer(e *trace.Event) {
	if AccountOf(e) == AccountNone || e.Status != 0 || e.Addr == 0 {
		return
	}
	at := SpaceOf(e)
	key := memoryPlace{e.Addr, at}
	if id, known := h.live[at].get(e.Addr); known {
		if h.blocks.seq(id) <= e.Seq {
			h.references.add(id)
			return
		}
		h.order.matchFreeAt(key, e.Seq)
		h.health.LateAllocs++
		return
	}
	if id, mapped := h.releasedHandles.get(e.Addr); mapped && at == SpaceHandle && h.blocks.seq(id) <= e.Seq {
		h.releasedHandles.take(e.Addr)
		b := h.blocks.at(id)
		b.state &^= blockReleased
		h.blocks.put(id, b)
		h.live[at].put(e.Addr, id)
		return
	}
	if e.Flags&trace.FlagLate != 0 && h.order.matchFreeAt(key, e.Seq) {
		h.health.LateAllocs++
		return
	}
	h.health.UnmatchedReferences++
}

// repeats takes in an allocation at the address of a live block that tells of the same memory once more: memory of
// another process opened again, which counts the openings, or a module's variable asked for again, which does not.
func (h *Heap) repeats(id uint32, e *trace.Event) bool {
	b := h.blocks.at(id)
	switch {
	case e.Level != cuda.LevelDriver || b.Mem != e.Mem || e.Mem != cuda.MemoryModule && e.Mem != cuda.MemoryForeign:
		return false
	// what was there may have ended unseen
	case h.lossy && (b.Size != e.Size || b.Device != e.Device || !h.owners.same(b, e)):
		return false
	case e.Mem == cuda.MemoryModule:
		return true
	case e.Mem == cuda.MemoryForeign && b.Size == e.Size:
		if b.Seq > e.Seq && h.order.matchFreeAt(memoryPlace{e.Addr, SpaceDevice}, e.Seq) {
			h.lateAlloc(e, AccountForeign) // closed before the live one was opened
		} else {
			h.references.add(id)
		}
		return true
	}
	return false
}
