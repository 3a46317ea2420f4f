package heap

// The straight way of a framework's blocks, which are nearly all blocks of a training program: an allocation at an
// address where nothing is live, and the free of a block that is. It leaves everything else to Apply, and calls no
// observer: the caller does what that would do.

// Straight reports whether the heap's blocks can go the straight way.
func (h *Heap) Straight() bool { return h.blocks.packed == nil }

// OpenFramework makes a block at an address, and nothing, with b nil, if one is live there. The caller fills all fields
// of b, of which none keeps its value.
func (h *Heap) OpenFramework(addr uint64) (id uint32, b *Block) {
	live := &h.live[SpaceFramework]
	live.reserve(h.blocks.count())
	slot, _, taken := live.find(addr)
	if taken {
		return 0, nil
	}
	live.used++
	id = h.take()
	live.set(slot, addr, id)
	return id, &h.blocks.list[id]
}

// CloseFramework takes the block at an address away from there, and does nothing, with b nil, if none is live there that
// is older than the event with an order number, or if there is more to do. The caller has b until it calls Recycle.
func (h *Heap) CloseFramework(addr, seq uint64) (id uint32, b *Block) {
	live := &h.live[SpaceFramework]
	if live.used == 0 {
		return 0, nil
	}
	slot, id, found := live.find(addr)
	if !found {
		return 0, nil
	}
	if b = &h.blocks.list[id]; b.Seq > seq || b.link|uint32(b.state) != 0 {
		return 0, nil
	}
	live.remove(slot)
	return id, b
}

// Recycle ends a block that CloseFramework returned.
func (h *Heap) Recycle(id uint32) { h.recycle(id) }
