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

// FrameworkBlocks are the live blocks of a framework's allocator, and the fast path for them.
type FrameworkBlocks struct {
	live   *blockIndex
	blocks *blockTable
}

// At returns the number of the live block that begins at an address.
func (f *FrameworkBlocks) At(addr uint64) (id uint32, ok bool) { return f.live.get(addr) }

// Any reports whether any block is live.
func (f *FrameworkBlocks) Any() bool { return f.live.used > 0 }

// Open makes a block at an address, and nothing, with ok false, if one is live there. The caller hands what it
// is like to Keep.
func (f *FrameworkBlocks) Open(addr uint64) (id uint32, ok bool) {
	live := f.live
	live.reserve(f.blocks.count)
	slot, _, taken := live.find(addr)
	if taken {
		return 0, false
	}
	live.used++
	id = f.blocks.take(addr)
	live.set(slot, addr, id)
	return id, true
}

// Alike is what blocks share that differ in nothing but their address, size, order number and time. The zero value is
// not known yet.
type Alike struct{ what, compacted uint32 }

// Keep keeps a block that Open made, whose account is the framework's.
func (f *FrameworkBlocks) Keep(id uint32, b *Block, to *Alike) {
	t := f.blocks
	p := t.packed.At(id)
	p.sized, p.seq, p.link, *t.times.At(id) = b.Size, b.Seq, 0, b.Time
	if to.compacted != t.compacted {
		what := t.number(b) // which may compact them
		*to = Alike{what, t.compacted}
	}
	p.what = to.what
}

// Close takes the block at an address away from there, and does nothing, with ok false, if none is live there
// that is older than the event with an order number, or if there is more to do. Blocks on the host have an account of
// their own. The block stays until Recycle; of b, the size, the time, the thread, the device and whether it is hidden
// are filled in.
func (f *FrameworkBlocks) Close(addr, seq uint64, b *Block) (id uint32, ok bool) {
	live := f.live
	if live.used == 0 {
		return 0, false
	}
	slot, id, found := live.find(addr)
	if !found {
		return 0, false
	}
	p := f.blocks.packed.At(id)
	d := &f.blocks.descriptions[p.what]
	if p.seq > seq || d.account != AccountFramework || p.link|uint32(p.state()) != 0 {
		return 0, false
	}
	live.remove(slot)
	b.Size, b.Time, b.Thread, b.Device, b.Hidden = p.sized, *f.blocks.times.At(id), d.thread, d.device, d.hidden
	return id, true
}

// Recycle ends a block that Close returned.
func (f *FrameworkBlocks) Recycle(id uint32) { f.blocks.recycle(id) }
