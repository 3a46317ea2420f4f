package analyzer

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// DeviceSizes compares what was asked for on a device with what it takes there, whatever filters are on.
type DeviceSizes struct {
	AtPeak SizesAt `json:"at_peak"` // at the first peak of the requested bytes
	AtEnd  SizesAt `json:"at_end"`
}

// SizesAt is the comparison at one moment. What the blocks take is their page bytes; idle pool memory and the graph pool come on top.
type SizesAt struct {
	RequestedBytes    uint64 `json:"requested_bytes"`     // live driver memory
	RoundedBytes      uint64 `json:"rounded_bytes"`       // the same with plain blocks, arrays and variables in multiples of 512 bytes
	PageBytes         uint64 `json:"page_bytes"`          // an estimate: the same with plain blocks and variables in the 2 MiB pages that they touch
	PoolReservedBytes uint64 `json:"pool_reserved_bytes"` // what memory pools held, as far as they were asked
	PoolIdleBytes     uint64 `json:"pool_idle_bytes"`     // of it in no live block
	GraphPoolBytes    uint64 `json:"graph_pool_bytes"`    // held for the allocation nodes of graphs
}

const (
	// blockGranule is what addresses and sizes of device memory are multiples of.
	blockGranule = 512
	// pageBits: the driver takes device memory in pages of 2 MiB, and a page that is used in part is used.
	pageBits = 21
	pageSize = 1 << pageBits
)

// sizes keeps the comparison up to date for every device. It looks at driver memory only, so its cost does not matter to a framework's events.
type sizes struct {
	devices []deviceSizes // by device slot
	pools   map[objectKey]poolWord
}

// poolWord is the latest word on what a pool holds.
type poolWord struct {
	seq    uint64
	size   uint64
	device int
}

type deviceSizes struct {
	requested meter
	rounding  share   // bytes that rounding to blockGranule adds
	pages     share   // bytes, blocks of other kinds included
	async     share   // live blocks of memory pools
	pooled    share   // held by memory pools
	graphs    share   // held by the graph pool
	edges     addrMap // blocks by the page that they use in part, plus one
}

// opened and closed take in a block of the driver account.
func (s *sizes) opened(b *Block) {
	d := at(&s.devices, deviceSlot(b.Device))
	epoch := d.requested.epoch
	d.rounding.grow(rounding(b), epoch)
	d.pages.grow(d.pagesOf(b, 1), epoch)
	if b.Mem == cuda.MemoryAsync {
		d.async.grow(b.Size, epoch)
	}
	d.requested.grow(b.Size, b.Time)
}

func (s *sizes) closed(b *Block) {
	d := &s.devices[deviceSlot(b.Device)]
	epoch := d.requested.epoch
	d.rounding.shrink(rounding(b), epoch)
	d.pages.shrink(d.pagesOf(b, -1), epoch)
	if b.Mem == cuda.MemoryAsync {
		d.async.shrink(b.Size, epoch)
	}
	d.requested.shrink(b.Size)
}

// rounding returns what a block takes beyond its size. VMM memory comes in whole pages, and what pools round up is part of what they hold.
func rounding(b *Block) uint64 {
	switch b.Mem {
	case cuda.MemoryDevice, cuda.MemoryArray, cuda.MemoryModule:
		return -b.Size % blockGranule
	}
	return 0
}

// pagesOf adds a block to the device's pages, or takes it away, and returns by how many bytes the pages in use change. Pages that a block fills are its
// own; those at its ends it may share. Only plain blocks and variables have addresses that say where they lie.
func (d *deviceSizes) pagesOf(b *Block, change int) uint64 {
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

// edge counts a block more or less that uses a page in part, and returns the page's size if it is the first or the last one.
func (d *deviceSizes) edge(page uint64, change int) uint64 {
	blocks, known := d.edges.get(page + 1)
	switch {
	case change > 0:
		d.edges.put(page+1, blocks+1)
		if known {
			return 0
		}
	case blocks > 1:
		d.edges.put(page+1, blocks-1)
		return 0
	default:
		d.edges.take(page + 1)
	}
	return pageSize
}

// reserve takes in what a pool holds.
func (s *sizes) reserve(e *trace.Event) {
	if e.Object != cuda.ObjectPool && e.Object != cuda.ObjectGraphPool || e.Size > maxBlockBytes {
		return
	}
	key := keyOf(e.Object, e.Addr, e.Device)
	old, known := s.pools[key]
	if known && old.seq > e.Seq {
		return
	}
	word := poolWord{seq: e.Seq, size: e.Size, device: deviceSlot(e.Device)}
	if s.pools == nil {
		s.pools = make(map[objectKey]poolWord)
	}
	s.pools[key] = word
	s.hold(e.Object, old, word)
}

// forget drops what a pool held if e says that it ended. Blocks of it that are still live count as blocks only.
func (s *sizes) forget(e *trace.Event) {
	if e.Object != cuda.ObjectPool || e.Status != 0 || e.Flags&trace.FlagReference != 0 {
		return
	}
	key := keyOf(e.Object, e.Addr, e.Device)
	if old, known := s.pools[key]; known && old.seq <= e.Seq {
		delete(s.pools, key)
		s.hold(e.Object, old, poolWord{device: old.device})
	}
}

func (s *sizes) hold(kind cuda.ObjectKind, before, after poolWord) {
	s.held(kind, before.device, -before.size)
	s.held(kind, after.device, after.size)
}

func (s *sizes) held(kind cuda.ObjectKind, slot int, change uint64) {
	d := at(&s.devices, slot)
	held := &d.pooled
	if kind == cuda.ObjectGraphPool {
		held = &d.graphs
	}
	held.grow(change, d.requested.epoch)
}

// value returns the comparison for a device slot.
func (s *sizes) value(slot int) DeviceSizes {
	if slot >= len(s.devices) {
		return DeviceSizes{}
	}
	d := &s.devices[slot]
	epoch := d.requested.epoch
	return DeviceSizes{
		AtPeak: d.at(d.requested.peak, func(v *share) uint64 { return v.peak(epoch) }),
		AtEnd:  d.now(),
	}
}

// now returns the comparison at the event that is being replayed.
func (d *deviceSizes) now() SizesAt {
	return d.at(d.requested.current, func(v *share) uint64 { return v.current })
}

func (d *deviceSizes) at(requested uint64, value func(*share) uint64) SizesAt {
	pooled, async := value(&d.pooled), value(&d.async)
	return SizesAt{RequestedBytes: requested, RoundedBytes: requested + value(&d.rounding), PageBytes: value(&d.pages), PoolReservedBytes: pooled,
		PoolIdleBytes: pooled - min(pooled, async), GraphPoolBytes: value(&d.graphs)}
}
