package heap

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// Block returns a live block to look at, which is not to be changed. It is valid until the next but three that is
// looked at.
func (h *Heap) Block(id uint32) *Block { return h.blocks.at(id) }

// Size returns a block's bytes.
func (h *Heap) Size(id uint32) uint64 { return h.blocks.packed.At(id).sized & (1<<packedState - 1) }

// Seq returns the order number of a block's allocation.
func (h *Heap) Seq(id uint32) uint64 { return h.blocks.seq(id) }

// Limit is one more than the highest block number so far. Numbers that are not in use have blocks of AccountNone.
func (h *Heap) Limit() uint32 { return h.blocks.count }

// Len is how many blocks there are, those of released handles that are still mapped among them.
func (h *Heap) Len() (n int) {
	for at := range h.live {
		n += h.live[at].used
	}
	return n + h.releasedHandles.used
}

// Room is how many slots the table of device addresses has. It doubles by being copied.
func (h *Heap) Room() int { return len(h.live[SpaceDevice].slots) }

// Short reports that a packed heap found no room for more blocks outside of Go's heap.
func (h *Heap) Short() bool { return h.room.Short() }

// Each calls visit for every block; visit must change none.
func (h *Heap) Each(visit func(id uint32, b *Block)) { h.blocks.each(visit) }

// EachMapping calls visit for every range of addresses behind which the memory of a known handle stands.
func (h *Heap) EachMapping(visit func(addr, size uint64, b *Block)) {
	var b Block
	h.maps.at.each(func(addr uint64, slot uint32) {
		if m := h.maps.slots[slot]; m.block != 0 && !isKey(addr) {
			h.blocks.load(m.block-1, &b)
			visit(addr, m.size, &b)
		}
	})
}

// Mapped returns the size of the mapping at an address and the order number of its event.
func (h *Heap) Mapped(addr uint64) (size, seq uint64, ok bool) {
	v, ok := h.maps.get(addr)
	return v.size, v.seq, ok
}

// Behind returns the memory that stands behind the mapping at an address, nil if its handle was never seen.
func (h *Heap) Behind(addr uint64) *Block {
	if v, known := h.maps.get(addr); known && v.block != 0 {
		return h.blocks.at(v.block - 1)
	}
	return nil
}

// FrameworkBlock returns the number of the framework's live block that begins at an address.
func (h *Heap) FrameworkBlock(addr uint64) (id uint32, ok bool) {
	return h.live[SpaceFramework].get(addr)
}

// HoldsFramework reports whether any block of a framework is live.
func (h *Heap) HoldsFramework() bool { return h.live[SpaceFramework].used > 0 }

// LoseRecords tells the heap that records are missing from now on, so that handles may stand for objects whose
// beginning it has not seen.
func (h *Heap) LoseRecords() { h.lossy = true }

// EndedSince reports whether the object of an event ended after the event, as far as that is remembered.
func (h *Heap) EndedSince(e *trace.Event) bool {
	return h.objects.endedSince(KeyOf(e.Object, e.Addr, e.Device), e.Seq)
}

// KnowsContexts reports whether the trace tells of contexts.
func (h *Heap) KnowsContexts() bool { return h.objects.counts[cuda.ObjectContext] != nil }

// EachContext calls visit for every live context of a device, with the order number of its creation.
func (h *Heap) EachContext(device int16, visit func(handle, seq uint64)) {
	for handle, v := range h.objects.contexts {
		if v.live && v.device == device {
			visit(handle, v.seq)
		}
	}
}
