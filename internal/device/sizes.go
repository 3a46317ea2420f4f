package device

import (
	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

const (
	// blockGranule is what addresses and sizes of device memory are multiples of.
	blockGranule = 512
	// pageBits: the driver takes device memory in pages of 2 MiB, and a page that is used in part is used.
	pageBits = 21
	pageSize = 1 << pageBits
)

// Sizes keeps the comparison up to date for every device. It looks at driver memory only, so its cost does not matter
// to a framework's events.
type Sizes struct {
	Devices []deviceSizes // by device slot
	pools   map[heap.ObjectKey]poolWord
}

// poolWord is the latest word on what a pool holds.
type poolWord struct {
	seq    uint64
	size   uint64
	device int
}

type deviceSizes struct {
	requested heap.Meter
	rounding  heap.Share   // bytes that rounding to blockGranule adds
	pages     heap.Share   // bytes, blocks of other kinds included
	async     heap.Share   // live blocks of memory pools
	pooled    heap.Share   // held by memory pools
	graphs    heap.Share   // held by the graph pool
	edges     heap.AddrMap // blocks by the page that they use in part, plus one
}

// Opened and closed take in a block of the driver account.
func (s *Sizes) Opened(b *heap.Block) {
	d := heap.Slot(&s.Devices, profile.DeviceSlot(b.Device))
	epoch := d.requested.Epoch
	d.rounding.Grow(rounding(b), epoch)
	d.pages.Grow(d.pagesOf(b, 1), epoch)
	if b.Mem == cuda.MemoryAsync {
		d.async.Grow(b.Size, epoch)
	}
	d.requested.Grow(b.Size, b.Time)
}

func (s *Sizes) Closed(b *heap.Block) {
	d := &s.Devices[profile.DeviceSlot(b.Device)]
	epoch := d.requested.Epoch
	d.rounding.Shrink(rounding(b), epoch)
	d.pages.Shrink(d.pagesOf(b, -1), epoch)
	if b.Mem == cuda.MemoryAsync {
		d.async.Shrink(b.Size, epoch)
	}
	d.requested.Shrink(b.Size)
}

// rounding returns what a block takes beyond its size. VMM memory comes in whole pages, and what pools round up is part
// of what they hold.
func rounding(b *heap.Block) uint64 {
	switch b.Mem {
	case cuda.MemoryDevice, cuda.MemoryArray, cuda.MemoryModule:
		return -b.Size % blockGranule
	}
	return 0
}

// pagesOf adds a block to the device's pages, or takes it away, and returns by how many bytes the pages in use change.
// Pages that a block fills are its own; those at its ends it may share. Only plain blocks and variables have addresses
// that say where they lie.
func (d *deviceSizes) pagesOf(b *heap.Block, change int) uint64 {
	if b.Mem != cuda.MemoryDevice && b.Mem != cuda.MemoryModule || b.Size == 0 || b.Addr+b.Size < b.Addr {
		return b.Size + rounding(b)
	}
	end := b.Addr + b.Size
	first, last := b.Addr>>pageBits, (end-1)>>pageBits
	full := last - first + 1
	var shared uint64
	if b.Addr%pageSize != 0 || first == last && end%pageSize != 0 {
		full--
		shared += d.edge(first, change)
	}
	if first != last && end%pageSize != 0 {
		full--
		shared += d.edge(last, change)
	}
	return full<<pageBits + shared
}

// edge counts a block more or less that uses a page in part, and returns the page's size if it is the first or the last
// one.
func (d *deviceSizes) edge(page uint64, change int) uint64 {
	blocks, known := d.edges.Get(page + 1)
	switch {
	case change > 0:
		d.edges.Put(page+1, blocks+1)
		if known {
			return 0
		}
	case blocks > 1:
		d.edges.Put(page+1, blocks-1)
		return 0
	default:
		d.edges.Take(page + 1)
	}
	return pageSize
}

// Reserve takes in what a pool holds.
func (s *Sizes) Reserve(e *trace.Event) {
	if e.Object != cuda.ObjectPool && e.Object != cuda.ObjectGraphPool || e.Size > heap.MaxBlockBytes {
		return
	}
	key := heap.KeyOf(e.Object, e.Addr, e.Device)
	old, known := s.pools[key]
	if known && old.seq > e.Seq {
		return
	}
	word := poolWord{seq: e.Seq, size: e.Size, device: profile.DeviceSlot(e.Device)}
	if s.pools == nil {
		s.pools = make(map[heap.ObjectKey]poolWord)
	}
	s.pools[key] = word
	s.hold(e.Object, old, word)
}

// Forget drops what a pool held if e says that it ended. Blocks of it that are still live count as blocks only.
func (s *Sizes) Forget(e *trace.Event) {
	if e.Object != cuda.ObjectPool || e.Status != 0 || e.Flags&trace.FlagReference != 0 {
		return
	}
	key := heap.KeyOf(e.Object, e.Addr, e.Device)
	if old, known := s.pools[key]; known && old.seq <= e.Seq {
		delete(s.pools, key)
		s.hold(e.Object, old, poolWord{device: old.device})
	}
}

func (s *Sizes) hold(kind cuda.ObjectKind, before, after poolWord) {
	s.held(kind, before.device, -before.size)
	s.held(kind, after.device, after.size)
}

func (s *Sizes) held(kind cuda.ObjectKind, slot int, change uint64) {
	d := heap.Slot(&s.Devices, slot)
	held := &d.pooled
	if kind == cuda.ObjectGraphPool {
		held = &d.graphs
	}
	held.Grow(change, d.requested.Epoch)
}

// Value returns the comparison for a device slot.
func (s *Sizes) Value(slot int) report.DeviceSizes {
	if slot >= len(s.Devices) {
		return report.DeviceSizes{}
	}
	d := &s.Devices[slot]
	epoch := d.requested.Epoch
	return report.DeviceSizes{
		AtPeak: d.at(d.requested.Peak, func(v *heap.Share) uint64 { return v.Peak(epoch) }),
		AtEnd:  d.now(),
	}
}

// now returns the comparison at the event that is being replayed.
func (d *deviceSizes) now() report.SizesAt {
	return d.at(d.requested.Current, func(v *heap.Share) uint64 { return v.Current })
}

func (d *deviceSizes) at(requested uint64, value func(*heap.Share) uint64) report.SizesAt {
	pooled, async := value(&d.pooled), value(&d.async)
	return report.SizesAt{RequestedBytes: requested, RoundedBytes: requested + value(&d.rounding),
		PageBytes: value(&d.pages), PoolReservedBytes: pooled,
		PoolIdleBytes: pooled - min(pooled, async), GraphPoolBytes: value(&d.graphs)}
}

// NowOn returns the comparison of sizes for a device slot at the event that is being replayed.
func (s *Sizes) NowOn(slot int) report.SizesAt {
	if slot >= len(s.Devices) {
		return report.SizesAt{}
	}
	return s.Devices[slot].now()
}
