package device

import (
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
)

// Pools of the program's own hold driver memory as libraries do, each under a number of its own. What is reserved is
// what all of them hold, and a framework's allocator if there is one beside them.

// Claim takes in that driver memory passes from the library that took it to a pool.
func (h *Holdings) Claim(slot int, library, pool uint32, b *heap.Block, epoch uint64) {
	if h.pools == nil {
		h.pools = make(map[uint32]bool)
	}
	h.pools[pool] = true
	h.CloseDriver(slot, library, b.Size, epoch)
	h.OpenDriver(slot, pool, b, epoch)
	h.notePeak(slot)
}

// Reports tells whether blocks are reported that lie in the driver memory of a library, or of a pool. Where no library
// is known, and there is no pool, the unknown one is taken for the framework's.
func (h *Holdings) Reports(holder uint32) bool {
	if holder == callstack.UnknownLibrary && len(h.pools) > 0 {
		return false
	}
	return holder == h.Library || h.pools[holder]
}

// HasPools reports whether any pool ever held memory of a device.
func (d *deviceHoldings) HasPools() bool { return d.heldPeak > 0 }

// ReservedOf returns what is reserved where a framework's own counter and the holders' driver memory are those.
func (h *Holdings) ReservedOf(reported uint64, heldBy func(holder uint32) uint64) uint64 {
	sum := h.framework(reported, heldBy)
	for pool := range h.pools {
		sum += heldBy(pool)
	}
	return sum
}

// framework is what a framework's allocator has of it.
func (h *Holdings) framework(reported uint64, heldBy func(holder uint32) uint64) uint64 {
	switch {
	case !h.FromDriver():
		return reported
	case h.Library == callstack.UnknownLibrary:
		return 0
	}
	return heldBy(h.Library)
}

// Current returns what is reserved on a device now.
func (h *Holdings) Current(slot int) uint64 {
	d := &h.Devices[slot]
	return h.framework(d.Last.ReservedBytes, d.heldBy) + d.pooled
}

// Peak returns what was reserved on a device at most.
func (h *Holdings) Peak(slot int) uint64 {
	d := &h.Devices[slot]
	switch {
	case !h.FromDriver():
		return max(d.heldPeak, d.Last.ReservedBytesPeak)
	case h.Library != callstack.UnknownLibrary && int(h.Library) < len(d.ByLibrary):
		return max(d.heldPeak, d.ByLibrary[h.Library].Peak)
	}
	return d.heldPeak
}

// notePeak remembers what is reserved on a device where there are pools: a framework alone has a peak of its own.
func (h *Holdings) notePeak(slot int) {
	if len(h.pools) > 0 {
		h.Devices[slot].heldPeak = max(h.Devices[slot].heldPeak, h.Current(slot))
	}
}
