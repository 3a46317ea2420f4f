package heap

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// The fast path of a framework's blocks, which are nearly all blocks of a training program: an allocation at an
// address where nothing is live, and the free of a block that is. It leaves everything else to Apply, and calls no
// observer: the caller does what that would do.

// FastRun reports whether all of the events are of a framework's blocks on devices, without owners, and none was
// refused. The fast path is then open to those that are allocations and frees without flags of their own.
func FastRun(c *trace.Columns) bool {
	level, levelFixed := c.Fixed(trace.FieldLevel)
	status, statusFixed := c.Fixed(trace.FieldStatus)
	mem, memFixed := c.Fixed(trace.FieldMem)
	owner, ownerFixed := c.Fixed(trace.FieldHandle)
	return levelFixed && cuda.Level(level) == cuda.LevelFramework && statusFixed && status == 0 &&
		ownerFixed && owner == 0 &&
		memFixed && cuda.MemoryKind(mem) != cuda.MemoryHost && cuda.MemoryKind(mem) != cuda.MemoryRegistered
}

// HasFastPath reports whether the heap's blocks can take the fast path.
func (h *Heap) HasFastPath() bool { return h.blocks.packed == nil }

// OpenFramework makes a block at an address, and nothing, with b nil, if one is live there. The caller fills all other
// fields of b: they are those of a block that ended.
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
	b = &h.blocks.list[id]
	b.Addr, b.Account, b.link, b.state = addr, AccountFramework, 0, 0
	return id, b
}

// CloseFramework takes the block at an address away from there, and does nothing, with b nil, if none is live there
// that is older than the event with an order number, or if there is more to do. Blocks on the host have an account of
// their own. The caller has b until it calls Recycle.
func (h *Heap) CloseFramework(addr, seq uint64) (id uint32, b *Block) {
	live := &h.live[SpaceFramework]
	if live.used == 0 {
		return 0, nil
	}
	slot, id, found := live.find(addr)
	if !found {
		return 0, nil
	}
	if b = &h.blocks.list[id]; b.Seq > seq || b.Account != AccountFramework || b.link|uint32(b.state) != 0 {
		return 0, nil
	}
	live.remove(slot)
	return id, b
}

// Recycle ends a block that CloseFramework returned.
func (h *Heap) Recycle(id uint32) { h.recycle(id) }
