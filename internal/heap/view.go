package heap

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

// LoseRecords tells the heap that records are missing from now on, so that handles may stand for objects whose
// beginning it has not seen.
func (h *Heap) LoseRecords() { h.lossy = true }
