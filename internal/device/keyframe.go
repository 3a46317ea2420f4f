package device

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// What of the devices stands in a keyframe; names of tables begin with "device.". What the live blocks say is not
// kept.

// slotOf reads a device slot.
func slotOf(t *trace.Numbers) int {
	slot := t.Next()
	if slot >= heap.MaxSlots {
		t.Fail()
		return 0
	}
	return int(slot)
}

// CanKeep reports whether a keyframe can hold the state: pools of the program's own are in none.
func (s *State) CanKeep() bool { return len(s.claims) == 0 && len(s.Holdings.pools) == 0 }

// Keep keeps the state.
func (s *State) Keep(to *trace.State) {
	h, t := &s.Holdings, to.Table("device.holdings")
	t.Put(uint64(h.Library), h.ReservedMismatches, h.AllocatedMismatches)
	t.PutSigned(int64(h.Allocated), int64(h.Reserved))
	for i := range h.Devices {
		d := &h.Devices[i]
		t.Put(d.Last.AllocatedBytes, d.Last.AllocatedBytesPeak, d.Last.ReservedBytes, d.Last.ReservedBytesPeak,
			d.Reserved.Current, d.Reported, d.Seen, uint64(len(d.ByLibrary)))
		t.PutBool(d.Counted)
		for n := range d.ByLibrary {
			t.Put(d.ByLibrary[n].Peak)
		}
	}
	s.Sizes.keep(to)
	costs := to.Table("device.contexts")
	for slot := range s.Samples.Devices {
		book := &s.Samples.Devices[slot]
		costs.Put(uint64(len(book.contexts)))
		for _, c := range slices.SortedFunc(maps.Keys(book.contexts), func(a, b liveContext) int {
			return cmp.Or(cmp.Compare(a.handle, b.handle), cmp.Compare(a.seq, b.seq))
		}) {
			costs.Put(c.handle, c.seq, book.contexts[c])
		}
	}
	pooled := to.Table("device.pools")
	for _, at := range slices.SortedFunc(maps.Keys(s.Pools.at), func(a, b pooledAt) int {
		return cmp.Or(cmp.Compare(a.addr, b.addr), cmp.Compare(a.device, b.device))
	}) {
		b := s.Pools.at[at]
		pooled.Put(at.addr, uint64(profile.DeviceSlot(at.device)), b.seq, b.size, uint64(b.pool))
	}
}

// Restore brings back what Keep kept, behind the live blocks; libraries is how many there are.
func (s *State) Restore(from *trace.State, libraries int) {
	h, t := &s.Holdings, from.Table("device.holdings")
	h.Library, h.ReservedMismatches, h.AllocatedMismatches = t.ID(), t.Next(), t.Next()
	h.Allocated, h.Reserved = agreement(t.Signed()), agreement(t.Signed())
	for slot := 0; t.More() && slot < heap.MaxSlots; slot++ {
		d := h.Device(slot)
		d.Last = report.Counter{AllocatedBytes: t.Next(), AllocatedBytesPeak: t.Next(), ReservedBytes: t.Next(),
			ReservedBytesPeak: t.Next()}
		d.Reserved = heap.Share{Current: t.Next()}
		d.Reported, d.Seen = t.Next(), t.Next()
		count := t.Next()
		if d.Counted = t.Bool(); count > uint64(libraries) || count < uint64(len(d.ByLibrary)) {
			t.Fail()
			return
		}
		for n := range int(count) {
			heap.Slot(&d.ByLibrary, n).Peak = t.Next()
		}
	}
	s.Sizes.restore(from)
	costs := from.Table("device.contexts")
	for slot := 0; costs.More() && slot < heap.MaxSlots; slot++ {
		book := heap.Slot(&s.Samples.Devices, slot)
		for range min(costs.Next(), heap.MaxContexts+1) {
			if book.contexts == nil {
				book.contexts = make(contextCosts)
			}
			at := liveContext{costs.Next(), costs.Next()}
			book.contexts[at] = costs.Next()
		}
	}
	s.Pools = Pools{}
	for t := from.Table("device.pools"); t.More() && len(s.Pools.at) < maxPooled; {
		if s.Pools.at == nil {
			s.Pools.at = make(map[pooledAt]pooled)
		}
		at := pooledAt{t.Next(), int16(slotOf(t) - 1)}
		s.Pools.at[at] = pooled{t.Next(), t.Next(), t.ID()}
	}
}

func (s *Sizes) keep(to *trace.State) {
	t := to.Table("device.sizes")
	t.Put(uint64(len(s.Devices)))
	for _, key := range slices.SortedFunc(maps.Keys(s.pools), heap.CompareKeys) {
		heap.PutKey(t, key)
		t.Put(s.pools[key].seq, s.pools[key].size, uint64(s.pools[key].device))
	}
}

func (s *Sizes) restore(from *trace.State) {
	t := from.Table("device.sizes")
	if n := min(t.Next(), heap.MaxSlots); n > uint64(len(s.Devices)) {
		heap.Extend(&s.Devices, int(n))
	}
	for t.More() {
		key := heap.TakeKey(t)
		word := poolWord{t.Next(), t.Next(), slotOf(t)}
		if s.pools == nil {
			s.pools = make(map[heap.ObjectKey]poolWord)
		}
		s.pools[key] = word
		s.hold(key.Kind, poolWord{device: word.device}, word)
	}
}

// Keep keeps what the allocator was told.
func (t *AllocatorTracker) Keep(to *trace.State) {
	settings, fractions := to.Table("device.settings"), to.Table("device.fractions")
	for _, v := range t.settings {
		settings.PutSigned(v.TimeNS)
		settings.PutText(v.Text)
	}
	for _, v := range t.fractions {
		fractions.PutSigned(v.TimeNS, int64(v.Device))
		fractions.Put(math.Float64bits(v.Fraction))
	}
	flushes := to.Table("device.flushes")
	flushes.Put(t.emptied.Count, t.emptied.GivenBack, t.emptied.NothingCount, t.emptied.LargestBytes)
	flushes.PutSigned(t.emptied.LargestTimeNS)
	if flushes.PutBool(t.largest != nil); t.largest != nil {
		t.largest.keep(flushes)
	}
	for _, thread := range slices.Sorted(maps.Keys(t.flushes)) {
		flushes.Put(uint64(thread))
		t.flushes[thread].keep(flushes)
	}
	queries := to.Table("device.queries")
	for _, q := range t.order {
		row := t.queries[q]
		queries.Put(uint64(q.native), uint64(q.python), uint64(q.call))
		queries.PutSigned(int64(q.device), row.FirstNS)
		queries.Put(row.Count, row.FirstFree, row.LastFree, row.Total)
	}
	t.Waiting.keep(to)
}

func (f *flush) keep(t *trace.Numbers) {
	t.PutSigned(f.time)
	t.Put(f.bytes, uint64(f.stacks.native), uint64(f.stacks.python))
}

func takeFlush(t *trace.Numbers) *flush {
	return &flush{t.Signed(), t.Next(), stacks{trace.StackID(t.ID()), trace.StackID(t.ID())}}
}

// Restore brings back what Keep kept.
func (t *AllocatorTracker) Restore(from *trace.State) {
	for n := from.Table("device.settings"); n.More() && len(t.settings) < maxSettings; {
		t.settings = append(t.settings, report.Setting{TimeNS: n.Signed(), Text: n.Text()})
	}
	for n := from.Table("device.fractions"); n.More() && len(t.fractions) < maxSettings; {
		t.fractions = append(t.fractions, report.Fraction{TimeNS: n.Signed(), Device: int16(n.Signed()),
			Fraction: math.Float64frombits(n.Next())})
	}
	n := from.Table("device.flushes")
	t.emptied = report.EmptyCache{Count: n.Next(), GivenBack: n.Next(), NothingCount: n.Next(), LargestBytes: n.Next(),
		LargestTimeNS: n.Signed()}
	if n.Bool() {
		t.largest = takeFlush(n)
	}
	for n.More() && len(t.flushes) < maxFlushes {
		if t.flushes == nil {
			t.flushes = make(map[trace.ThreadID]*flush)
		}
		thread := trace.ThreadID(n.ID())
		t.flushes[thread] = takeFlush(n)
	}
	for n := from.Table("device.queries"); n.More() && len(t.order) < maxQueries; {
		if t.queries == nil {
			t.queries = make(map[query]*report.FreeQuestion)
		}
		q := query{stacks: stacks{trace.StackID(n.ID()), trace.StackID(n.ID())}, call: cuda.API(n.Next()),
			device: int16(n.Signed())}
		t.queries[q] = &report.FreeQuestion{Call: q.call.String(), Device: q.device, FirstNS: n.Signed(),
			Count: n.Next(), FirstFree: n.Next(), LastFree: n.Next(), Total: n.Next()}
		t.order = append(t.order, q)
	}
	t.Waiting.restore(from)
}

func (w *Waiting) keep(to *trace.State) {
	t := to.Table("device.waiting")
	t.Put(w.reported.Blocks, w.reported.Peak, w.reported.Unknown, uint64(len(w.devices)), uint64(len(w.blocks)))
	for _, addr := range slices.Sorted(maps.Keys(w.blocks)) {
		b := w.blocks[addr]
		t.Put(addr, b.size, uint64(b.slot), uint64(b.events))
	}
	for _, event := range slices.Sorted(maps.Keys(w.events)) {
		t.Put(event, w.events[event])
	}
}

func (w *Waiting) restore(from *trace.State) {
	t := from.Table("device.waiting")
	w.reported = report.Waiting{Blocks: t.Next(), Peak: t.Next(), Unknown: t.Next()}
	if n := min(t.Next(), heap.MaxSlots); n > 0 {
		heap.Slot(&w.devices, int(n-1))
	}
	w.blocks, w.events = make(map[uint64]*waitingBlock), make(map[uint64]uint64)
	for n := t.Next(); n > 0 && t.More(); n-- {
		addr := t.Next()
		b := &waitingBlock{size: t.Next(), slot: slotOf(t), events: int(t.ID())}
		w.blocks[addr] = b
		heap.Slot(&w.devices, b.slot).Current += b.size
		w.total += b.size
	}
	for t.More() {
		event, addr := t.Next(), t.Next()
		if w.blocks[addr] == nil {
			t.Fail()
			return
		}
		w.events[event] = addr
	}
}
