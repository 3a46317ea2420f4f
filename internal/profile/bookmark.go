package profile

import (
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// What of profiles stands in a bookmark: see heap.Meter.Keep.

// Keep keeps an origin.
func (o *Origin) Keep(t *trace.Numbers) {
	t.Put(uint64(o.Stack), uint64(o.PyStack), uint64(o.Tag), uint64(o.Thread), uint64(o.Name), uint64(o.Module),
		uint64(o.call), uint64(o.SizeClass), uint64(o.kind), uint64(o.account), uint64(o.Category), uint64(o.Lifetime),
		uint64(o.Place))
	t.PutSigned(int64(o.Device))
}

// Restore brings back what Keep kept; places is how many there are.
func (o *Origin) Restore(t *trace.Numbers, places int) {
	*o = Origin{Stack: trace.StackID(t.ID()), PyStack: trace.StackID(t.ID()), Tag: trace.StringID(t.ID()),
		Thread: trace.ThreadID(t.ID()), Name: trace.StringID(t.ID()), Module: trace.StringID(t.ID()),
		call: cuda.API(t.Next()), SizeClass: uint16(t.Next()), kind: cuda.MemoryKind(t.Next()),
		account: heap.Account(t.Next()), Category: trace.Category(t.Next()), Lifetime: lifetime(t.Next()),
		Place: uint16(t.Next()), Device: int16(t.Signed())}
	if o.account >= heap.AccountCount || int(o.Place) > places {
		t.Fail()
	}
}

// Len is how many places there are.
func (p *Places) Len() int { return len(p.list) }

// CanKeep reports whether a bookmark can hold the cells: not once some were retired.
func (c *Cells) CanKeep() bool { return c.retired == nil && c.Certain == nil }

// KeepRun keeps the cells in the order of their numbers.
func (c *Cells) KeepRun(t *trace.Numbers) {
	t.Put(uint64(len(c.List)))
	for i := range c.List {
		v := &c.List[i]
		v.Origin.Keep(t)
		for _, s := range v.shares() {
			s.Keep(t)
		}
		t.Put(v.Allocs, v.Frees, v.AllocBytes)
	}
}

// RestoreRun brings back what KeepRun kept, into cells of nothing.
func (c *Cells) RestoreRun(t *trace.Numbers, places int) {
	n := t.Next()
	if n > CellsKept {
		t.Fail()
	}
	for ; n > 0 && t.More(); n-- {
		var o Origin
		if o.Restore(t, places); c.knows(&o) {
			t.Fail()
			return
		}
		v := &c.List[c.Add(&o)]
		for _, s := range v.shares() {
			s.Restore(t)
		}
		v.Counts = Counts{t.Next(), t.Next(), t.Next()}
	}
}

func (c *Cells) knows(o *Origin) bool {
	_, known := c.find(o)
	return known
}

func (v *Cell) shares() []*heap.Share {
	return []*heap.Share{&v.Share, &v.Request.rest, &v.Request.unknown}
}

// Keep keeps an account.
func (d *AccountStats) Keep(t *trace.Numbers) {
	d.Total.Keep(t)
	d.Life.Keep(t)
	t.Put(d.PeakEvent, uint64(len(d.Devices)))
	for i := range d.Devices {
		dev := &d.Devices[i]
		dev.Meter.Keep(t)
		dev.Part.Keep(t)
		dev.AtFramework.Keep(t)
	}
	d.Cells.KeepRun(t)
}

// Restore brings back what Keep kept.
func (d *AccountStats) Restore(t *trace.Numbers, places int) {
	d.Total.Restore(t)
	d.Life.Restore(t)
	d.PeakEvent = t.Next()
	for slot := range devices(t) {
		dev := heap.Slot(&d.Devices, slot)
		dev.Meter.Restore(t)
		dev.Part.Restore(t)
		dev.AtFramework.Restore(t)
	}
	d.Cells.RestoreRun(t, places)
}

// devices reads how many device slots there are.
func devices(t *trace.Numbers) int {
	n := t.Next()
	if n > heap.MaxSlots {
		t.Fail()
		return 0
	}
	return int(n)
}

// Keep keeps what is known of requests.
func (r *Requests) Keep(t *trace.Numbers) {
	t.PutBool(r.known)
	t.Put(uint64(len(r.devices)))
	for i := range r.devices {
		r.devices[i].keep(t)
	}
	r.total.keep(t)
}

// Restore brings back what Keep kept.
func (r *Requests) Restore(t *trace.Numbers) {
	r.known = t.Bool()
	for slot := range devices(t) {
		heap.Slot(&r.devices, slot).restore(t)
	}
	r.total.restore(t)
}

func (r *requestShares) keep(t *trace.Numbers) {
	r.rest.Keep(t)
	r.unknown.Keep(t)
}

func (r *requestShares) restore(t *trace.Numbers) {
	r.rest.Restore(t)
	r.unknown.Restore(t)
}

// KeepRun keeps the series whole: what all call stacks held over time.
func (h *HeldSeries) KeepRun(t *trace.Numbers) {
	t.PutBool(h.paused)
	t.Put(h.perBin, h.count, uint64(h.LastAlloc), h.allocs, h.events, uint64(len(h.Ends)), uint64(len(h.owners)))
	t.PutSigned(h.LastTimeNS)
	t.PutSigned(h.Ends...)
	t.Put(h.Freed...)
	for i := range h.owners {
		o := &h.owners[i]
		t.Put(uint64(o.account), o.id, o.live, o.low, uint64(o.bin), uint64(o.blocks), uint64(o.allocs), o.last,
			uint64(o.lastOf), o.lastAt, o.closedAt)
		t.PutBool(o.lows != nil)
		t.Put(uint64(len(o.lows)))
		t.Put(o.lows...)
	}
}

// RestoreRun brings back what KeepRun kept, into a series of nothing.
func (h *HeldSeries) RestoreRun(t *trace.Numbers) {
	h.paused, h.perBin, h.count = t.Bool(), max(t.Next(), heldBinFirst), t.Next()
	h.LastAlloc, h.allocs, h.events = int(t.ID()), t.Next(), t.Next()
	ends, owners := t.Next(), t.Next()
	if h.LastTimeNS = t.Signed(); ends >= heldBins || owners > heldOwners+uint64(heap.AccountCount) {
		t.Fail()
		return
	}
	for range ends {
		h.Ends = append(h.Ends, t.Signed())
	}
	h.Freed = h.Freed[:0]
	for range ends + 1 {
		h.Freed = append(h.Freed, t.Next())
	}
	for range owners {
		o := heldOwner{heldKey: heldKey{heap.Account(t.Next()), t.Next()}, live: t.Next(), low: t.Next(),
			bin: int(t.ID()), blocks: t.ID(), allocs: t.ID(), last: t.Next(), lastOf: t.ID(), lastAt: t.Next(),
			closedAt: t.Next()}
		if t.Bool() {
			o.lows = make([]uint64, 0, heldBins)
		}
		n := t.Next()
		if _, known := h.index[o.heldKey]; known || o.bin > int(ends) || n > uint64(o.bin) {
			t.Fail()
			return
		}
		for range n {
			o.lows = append(o.lows, t.Next())
		}
		h.index[o.heldKey] = uint32(len(h.owners))
		h.owners = append(h.owners, o)
	}
}
