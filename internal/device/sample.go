package device

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// MaxSamples bounds the samples that are kept of a device; then every second one goes.
const MaxSamples = 1024

// occasionPeriod is what the recorder calls a sample that nothing but the clock asked for.
const occasionPeriod = "period"

// Samples keeps what devices reported.
type Samples struct {
	Devices []Book // by device slot
}

// Book is what is kept of one device's samples.
type Book struct {
	Count    uint64          // of all
	List     []report.Sample // in the order in which they came; some are left out where there are very many
	contexts contextCosts
}

// Add takes in what a device reported. The event's order number is its moment, so the heap and the sizes on the device
// are as they were then. It returns the sample and these sizes; ok is false for figures that no device has.
func (k *Samples) Add(e *trace.Event, h *heap.Heap, on *Sizes,
	tables *trace.Tables) (s report.Sample, sizes report.SizesAt, ok bool) {
	if e.Device < 0 || e.Size > heap.MaxBlockBytes || e.Allocated > heap.MaxBlockBytes ||
		e.Count > heap.MaxBlockBytes || e.Reserved > heap.MaxBlockBytes {
		return s, sizes, false
	}
	slot := profile.DeviceSlot(e.Device)
	book := heap.Slot(&k.Devices, slot)
	sizes = on.NowOn(slot)
	s = report.Sample{TimeNS: e.Time, Occasion: tables.String(e.Name), UsedBytes: e.Size, KeptBytes: e.Reserved,
		Settled:      e.Flags&(trace.FlagUnsettled|trace.FlagLate) == 0,
		ShareKnown:   e.Flags&trace.FlagShareUnknown == 0,
		TrackedBytes: sizes.RoundedBytes + sizes.PoolIdleBytes + sizes.GraphPoolBytes}
	if s.ShareKnown {
		s.OwnBytes, s.OthersBytes = e.Allocated, e.Count
	}
	live := liveContexts(h, e.Device)
	if s.Rank() == 2 {
		book.contexts.measure(live, int64(s.OwnBytes-s.TrackedBytes-uncountedPages(s, sizes)))
	}
	s.ContextBytes = book.contexts.sum(live)
	s.RemainderBytes = int64(s.UsedBytes - s.TrackedBytes - s.ContextBytes - s.OthersBytes - s.KeptBytes)
	book.add(s)
	return s, sizes, true
}

// Last returns the latest sample of a device, or the settled one before it if the latest fits no single moment; nil
// without any.
func (k *Samples) Last(device int16) *report.Sample {
	slot := profile.DeviceSlot(device)
	if slot >= len(k.Devices) || len(k.Devices[slot].List) == 0 {
		return nil
	}
	list := k.Devices[slot].List
	last := list[len(list)-1]
	if n := len(list); n > 1 && !last.Settled && list[n-2].Settled && last.TimeNS-list[n-2].TimeNS < settledWindow {
		last = list[n-2]
	}
	return &last
}

// settledWindow is how much older, in nanoseconds, a settled sample may be that stands for one that is not.
const settledWindow = 1e9

// uncountedPages is what a device that counts whole pages has counted beyond the blocks; such a device's figure is a
// multiple of a page where the blocks are none. Without this a new context would be charged with the rest of the first
// pages, for as long as it lives.
func uncountedPages(s report.Sample, sizes report.SizesAt) uint64 {
	if s.OwnBytes%pageSize == 0 && s.TrackedBytes%pageSize != 0 {
		return sizes.PartialPages()
	}
	return 0
}

func (b *Book) add(s report.Sample) {
	b.Count++
	if len(b.List) == MaxSamples {
		b.thin()
	}
	b.List = append(b.List, s)
}

// thin drops every second sample that only the clock asked for, and if that is not much, every second one.
func (b *Book) thin() {
	drop := func(which func(*report.Sample) bool) {
		kept := b.List[:0]
		for i := range b.List {
			if i%2 == 0 || !which(&b.List[i]) {
				kept = append(kept, b.List[i])
			}
		}
		b.List = kept
	}
	drop(func(s *report.Sample) bool { return s.Occasion == occasionPeriod })
	if len(b.List) > MaxSamples*3/4 {
		drop(func(*report.Sample) bool { return true })
	}
}

// Restart forgets the samples, and the highest of what is held.
func (s *State) Restart() {
	for i := range s.Holdings.Devices {
		d := &s.Holdings.Devices[i]
		d.Last.AllocatedBytesPeak, d.Last.ReservedBytesPeak = d.Last.AllocatedBytes, d.Last.ReservedBytes
		d.heldPeak = 0
		s.Holdings.notePeak(i)
		for n := range d.ByLibrary {
			d.ByLibrary[n].Peak = d.ByLibrary[n].Current
		}
	}
	for i := range s.Samples.Devices {
		s.Samples.Devices[i].Count, s.Samples.Devices[i].List = 0, nil
	}
	for i := range s.Sizes.Devices {
		r := &s.Sizes.Devices[i].requested
		r.Restart(r.PeakTime)
	}
}
