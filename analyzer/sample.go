package analyzer

import (
	"cmp"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// maxSamples bounds the samples that are kept of a device; then every second one goes.
const maxSamples = 1024

// occasionPeriod is what the recorder calls a sample that nothing but the clock asked for.
const occasionPeriod = "period"

// samples keeps what devices reported.
type samples struct {
	devices []deviceBook // by device slot
	moment  *moment      // collector.moment as of the latest sample
	asked   int64        // time of the moment that Options.At names
	isAsked bool
}

// deviceBook is what is kept of one device's samples: a list of figures, and the whole state at three of them.
type deviceBook struct {
	count    uint64
	list     []report.Sample
	contexts contextCosts

	latest  *deviceMoment
	highest *deviceMoment // the process's own share was largest
	nearest *deviceMoment // to the moment asked for
}

// deviceMoment is a device's state at a sample.
type deviceMoment struct {
	sample    report.Sample
	sizes     report.SizesAt
	held      [heap.AccountCount][]held // driver and framework: live bytes by origin
	byLibrary []uint64                  // driver bytes
}

// sample takes in what a device reported. The event's order number is its moment, so the heap is as it was then.
func (c *collector) sample(e *trace.Event) {
	if e.Device < 0 || !c.filter.hasDevice(e.Device) || e.Size > heap.MaxBlockBytes || e.Allocated > heap.MaxBlockBytes || e.Count > heap.MaxBlockBytes || e.Reserved > heap.MaxBlockBytes {
		return
	}
	slot := deviceSlot(e.Device)
	book := meter.Slot(&c.samples.devices, slot)
	c.noteAsked()
	sizes := c.sizes.nowOn(slot)
	s := report.Sample{TimeNS: e.Time, Occasion: c.resolver.tables.String(e.Name), UsedBytes: e.Size, KeptBytes: e.Reserved,
		Settled:      e.Flags&(trace.FlagUnsettled|trace.FlagLate) == 0,
		ShareKnown:   e.Flags&trace.FlagShareUnknown == 0,
		TrackedBytes: sizes.RoundedBytes + sizes.PoolIdleBytes + sizes.GraphPoolBytes}
	if s.ShareKnown {
		s.OwnBytes, s.OthersBytes = e.Allocated, e.Count
	}
	live := c.liveContexts(e.Device)
	if s.Rank() == 2 {
		book.contexts.measure(live, int64(s.OwnBytes-s.TrackedBytes-uncountedPages(s, sizes)))
	}
	s.ContextBytes = book.contexts.sum(live)
	s.RemainderBytes = int64(s.UsedBytes - s.TrackedBytes - s.ContextBytes - s.OthersBytes - s.KeptBytes)
	book.add(s)
	if len(c.groupings) > 0 {
		book.keep(s, c.samples.asked, c.samples.isAsked, func() *deviceMoment { return c.deviceMoment(slot, s, sizes) })
	}
}

// uncountedPages is what a device that counts whole pages has counted beyond the blocks; such a device's figure is a multiple of a page where the blocks are none.
// Without this a new context would be charged with the rest of the first pages, for as long as it lives.
func uncountedPages(s report.Sample, sizes report.SizesAt) uint64 {
	if s.OwnBytes%pageSize == 0 && s.TrackedBytes%pageSize != 0 {
		return sizes.PartialPages()
	}
	return 0
}

// nowOn returns the comparison of sizes for a device slot at the event that is being replayed.
func (s *sizes) nowOn(slot int) report.SizesAt {
	if slot >= len(s.devices) {
		return report.SizesAt{}
	}
	return s.devices[slot].now()
}

func (b *deviceBook) add(s report.Sample) {
	b.count++
	if len(b.list) == maxSamples {
		b.thin()
	}
	b.list = append(b.list, s)
}

// thin drops every second sample that only the clock asked for, and if that is not much, every second one.
func (b *deviceBook) thin() {
	drop := func(which func(*report.Sample) bool) {
		kept := b.list[:0]
		for i := range b.list {
			if i%2 == 0 || !which(&b.list[i]) {
				kept = append(kept, b.list[i])
			}
		}
		b.list = kept
	}
	drop(func(s *report.Sample) bool { return s.Occasion == occasionPeriod })
	if len(b.list) > maxSamples*3/4 {
		drop(func(*report.Sample) bool { return true })
	}
}

// keep makes a copy of the state if the sample is the best so far for one of the moments.
func (b *deviceBook) keep(s report.Sample, asked int64, isAsked bool, copyState func() *deviceMoment) {
	var m *deviceMoment
	take := func(place **deviceMoment) {
		if m == nil {
			m = copyState()
		}
		*place = m
	}
	replaces := func(old *deviceMoment, better bool) bool {
		return old == nil || s.Rank() > old.sample.Rank() || s.Rank() == old.sample.Rank() && better
	}
	if isAsked && replaces(b.nearest, b.nearest != nil && distance(s.TimeNS, asked) < distance(b.nearest.sample.TimeNS, asked)) {
		take(&b.nearest)
	}
	if replaces(b.highest, b.highest != nil && s.Own() > b.highest.sample.Own()) {
		take(&b.highest)
	}
	if replaces(b.latest, true) {
		take(&b.latest)
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// noteAsked looks whether the moment that was asked for has come since the last sample. If so, the last sample is the nearest one until a nearer one comes.
func (c *collector) noteAsked() {
	k := &c.samples
	switch {
	case c.want.kind == momentPeak:
		t := c.details[c.mainSoFar()].total.PeakTime
		if k.isAsked && k.asked == t {
			return
		}
		k.asked = t
	case c.moment != nil && c.moment != k.moment:
		k.moment, k.asked = c.moment, c.moment.time
	default:
		return
	}
	k.isAsked = true
	for i := range k.devices {
		k.devices[i].nearest = k.devices[i].latest
	}
}

// mainSoFar is the account that reports put first, as far as the trace has been read.
func (c *collector) mainSoFar() heap.Account {
	if c.details[heap.AccountFramework].total.Allocs > 0 {
		return heap.AccountFramework
	}
	return heap.AccountDriver
}

// deviceMoment copies a device's state. It walks over the cells: samples that are worth it are seconds apart.
func (c *collector) deviceMoment(slot int, s report.Sample, sizes report.SizesAt) *deviceMoment {
	m := &deviceMoment{sample: s, sizes: sizes}
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		m.held[a] = c.details[a].cells.holding(func(v *cell) uint64 {
			if deviceSlot(v.device) != slot {
				return 0
			}
			return v.Current
		}, currentShare)
	}
	if slot < len(c.holding.devices) {
		m.byLibrary = collect(c.holding.devices[slot].byLibrary, func(v *libraryBytes) uint64 { return v.Current })
	}
	return m
}

// liveContext names a context; handles are used again, so the order number of its creation belongs to the name.
type liveContext struct {
	handle, seq uint64
}

// liveContexts lists the contexts of a device. A trace that tells of no contexts is taken to have one that never ends.
func (c *collector) liveContexts(device int16) []liveContext {
	if !c.heap.KnowsContexts() {
		return []liveContext{{}}
	}
	var list []liveContext
	c.heap.EachContext(device, func(handle, seq uint64) { list = append(list, liveContext{handle, seq}) })
	return list
}

// contextCosts is what each context of a device was found to take: what the device counted for the process beyond what it had allocated, when the context was
// new. Code that is loaded later and heaps that grow are not part of it: they show in the remainder.
type contextCosts map[liveContext]uint64

// measure sets the costs of contexts that have none yet; untracked is what the process takes beyond what the trace accounts for.
func (costs *contextCosts) measure(live []liveContext, untracked int64) {
	var fresh []liveContext
	for _, context := range live {
		if cost, known := (*costs)[context]; known {
			untracked -= int64(cost)
		} else {
			fresh = append(fresh, context)
		}
	}
	if len(fresh) == 0 {
		return
	}
	if *costs == nil || len(*costs) > heap.MaxContexts {
		*costs = make(contextCosts)
	}
	rest, n := uint64(max(untracked, 0)), uint64(len(fresh))
	for i, context := range fresh {
		share := rest / n
		if i == 0 {
			share += rest % n
		}
		(*costs)[context] = share
	}
}

func (costs contextCosts) sum(live []liveContext) (sum uint64) {
	for _, context := range live {
		sum += costs[context]
	}
	return sum
}

// nearestTo returns the state at the sample that stands for a moment of Options.At; nil without a sample.
func (b *deviceBook) nearestTo(want At) *deviceMoment {
	if want.kind == momentExit {
		return b.latest
	}
	return cmp.Or(b.nearest, b.latest)
}
