package device

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Waiting tracks freed blocks that wait for events. Its memory is bounded by the outstanding events.
type Waiting struct {
	blocks   map[uint64]*waitingBlock // by address
	events   map[uint64]uint64        // address of the block that waits for it
	devices  []heap.Share             // bytes by device slot, against the framework's total
	total    uint64
	reported report.Waiting
}

// waitingBlock is one block that cannot be used again before all its events are complete.
type waitingBlock struct {
	size   uint64
	slot   int
	events int
}

// begin records that a block waits for one more event; slot is its device's, epoch that of the framework's total.
func (w *Waiting) begin(e *trace.Event, slot int, epoch uint64) {
	if e.Addr == 0 {
		w.reported.Unknown++
		return
	}
	if w.blocks == nil {
		w.blocks, w.events = make(map[uint64]*waitingBlock), make(map[uint64]uint64)
	}
	w.complete(e.Handle, epoch) // an event that is recorded again was complete, even without a record of its completion
	b := w.blocks[e.Addr]
	if b == nil {
		b = &waitingBlock{size: e.Size, slot: slot}
		w.blocks[e.Addr] = b
		heap.Slot(&w.devices, slot).Grow(e.Size, epoch)
		w.total += e.Size
		w.reported.Blocks++
		w.reported.Peak = max(w.reported.Peak, w.total)
	}
	b.events++
	w.events[e.Handle] = e.Addr
}

// complete records the completion of an event.
func (w *Waiting) complete(event, epoch uint64) {
	addr, known := w.events[event]
	if !known {
		return
	}
	delete(w.events, event)
	b := w.blocks[addr]
	if b.events--; b.events > 0 {
		return
	}
	delete(w.blocks, addr)
	w.devices[b.slot].Shrink(b.size, epoch)
	w.total -= b.size
}

// Now lists the bytes that wait, by device slot.
func (w *Waiting) Now() []uint64 {
	return w.list(func(s *heap.Share) uint64 { return s.Current })
}

// AtPeak lists what waited when the framework's total was at the maximum of the given epoch, by device slot.
func (w *Waiting) AtPeak(epoch uint64) []uint64 {
	return w.list(func(s *heap.Share) uint64 { return s.Peak(epoch) })
}

func (w *Waiting) list(value func(*heap.Share) uint64) []uint64 {
	list := make([]uint64, len(w.devices))
	for i := range w.devices {
		list[i] = value(&w.devices[i])
	}
	return list
}

func (w *Waiting) value(epoch uint64) report.Waiting {
	v := w.reported
	v.Live = w.total
	for _, bytes := range w.AtPeak(epoch) {
		v.AtPeak += bytes
	}
	return v
}
