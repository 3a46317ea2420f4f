package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// Causes of lost records.
const (
	CauseNoRoom    = "no room was left in the spool"
	CauseNoThreads = "threads could not be recorded"
)

// asRecorded are the parts of a summary whose figures have no bounds.
var asRecorded = []string{"alloc_count", "free_count", "alloc_bytes", "implicit_frees", "objects", "devices.sizes",
	"sites", "categories", "training", "device_ledger",
	"lifetimes", "oom.events"}

// certainty is what lost records leave certain of the figures of a summary.
type certainty struct {
	*losses
	holdings *device.Holdings
	narrowed bool           // a filter other than by device leaves out blocks
	bounds   *report.Bounds // nil if nothing was lost
}

func newCertainty(r *replayer, src trace.Source, lostRecords uint64) certainty {
	return certainty{&r.losses, &r.device.Holdings, r.accounts.filter.Narrowed(),
		r.losses.boundsOf(src, lostRecords)}
}

// boundsOf returns nil if nothing was lost.
func (l *losses) boundsOf(src trace.Source, lostRecords uint64) *report.Bounds {
	records, rings, _ := src.Lost()
	if lostRecords == 0 && rings == 0 {
		return nil
	}
	b := &report.Bounds{LostRecords: lostRecords, Cause: CauseNoRoom, Exact: []string{}, AsRecorded: asRecorded}
	if rings > 0 {
		b.Cause = CauseNoThreads
	}
	announced := records <= l.count && lostRecords > 0 // by events, so that it is known when
	if announced && l.unknown == 0 {
		enders, others := l.enders, l.others
		b.LostFrees, b.LostOthers = &enders, &others
		b.RecordedIsUpper = others == 0
	}
	if b.Placed = announced && !l.unplaced; b.Placed {
		b.ExactBeforeNS = l.before
	}
	return b
}

// noLowerBound reports whether nothing that was replayed is certain, since it is not known where records that end
// memory were lost.
func (c *certainty) noLowerBound() bool {
	return c.losses.nothingCertain || c.bounds != nil && c.bounds.LostFrees == nil && !c.bounds.Placed
}

// lower returns the lower bounds of a total.
func (c *certainty) lower(m *heap.Meter) (peak, live uint64) {
	switch {
	case c.noLowerBound():
		return 0, 0
	case !c.losses.uncertain:
		return m.Peak, m.Current
	}
	return m.CertainPeak, m.Certain
}

// lowerShare is what is certain of a cell's share by a measure, whose value is whole.
func (c *certainty) lowerShare(cells *profile.Cells, n int, whole uint64, measure func(*heap.Share) uint64) uint64 {
	switch {
	case c.noLowerBound():
		return 0
	case cells.Certain == nil:
		return whole
	}
	return min(whole, cells.CertainOf(n, measure))
}

// lowerHeld is what is certain of a part of a moment.
func (c *certainty) lowerHeld(h *profile.Held) uint64 {
	if c.noLowerBound() {
		return 0
	}
	return min(h.Bytes, h.Certain)
}

// exactMoment reports whether a moment lies before the first lost record.
func (c *certainty) exactMoment(m *moment.State) bool {
	return c.bounds == nil || c.bounds.Placed && m.Exact
}

// bound adds the lower bounds of levels and devices to a summary, and says what is exact.
func (c *certainty) bound(s *report.Summary, a *accounts) {
	if s.Bounds == nil {
		return
	}
	framework, driver := c.boundLevel(&s.Framework, &a.details[heap.AccountFramework].Total),
		c.boundLevel(&s.Driver, &a.details[heap.AccountDriver].Total)
	var sum struct{ framework, driver uint64 }
	for i := range s.Devices {
		d := &s.Devices[i]
		c.boundDevice(d, a)
		framework.raise(*d.Framework.PeakBytesLower, 0)
		driver.raise(*d.Driver.PeakBytesLower, 0)
		sum.framework += *d.Framework.LiveBytesLower
		sum.driver += *d.Driver.LiveBytesLower
	}
	framework.raise(0, sum.framework)
	driver.raise(0, sum.driver)
	for other := range heap.AccountCount {
		if l, used := s.Other[other.String()]; used {
			c.boundLevel(&l, &a.totals[other])
			s.Other[other.String()] = l
		}
	}
	if s.Bounds.RecordedIsUpper {
		capBounds(&s.Framework)
		capBounds(&s.Driver)
		for i := range s.Devices {
			capBounds(&s.Devices[i].Framework)
			capBounds(&s.Devices[i].Driver)
		}
	}
	findExact(s.Bounds, s)
}

// capBounds keeps the lower bounds of a level from lying above what was recorded, where that is an upper one: then a
// framework's counter is damaged.
func capBounds(l *report.Level) {
	if l.PeakBytesLower != nil {
		l.PeakBytesLower, l.LiveBytesLower = new(min(*l.PeakBytesLower, l.PeakBytes)),
			new(min(*l.LiveBytesLower, l.LiveBytes))
	}
}

// levelBounds are a level's lower bounds.
type levelBounds struct{ peak, live *uint64 }

func (c *certainty) boundLevel(l *report.Level, m *heap.Meter) levelBounds {
	peak, live := c.lower(m)
	l.PeakBytesLower, l.LiveBytesLower = &peak, &live
	return levelBounds{&peak, &live}
}

// raise takes in better bounds. What was live at the end was live at some moment.
func (b levelBounds) raise(peak, live uint64) {
	*b.live = max(*b.live, live)
	*b.peak = max(*b.peak, peak, *b.live)
}

// boundDevice adds to what the replay is certain of what the framework itself counts: its blocks, and what it holds
// from the driver. It counts on whatever is lost.
func (c *certainty) boundDevice(d *report.Device, a *accounts) {
	slot := profile.DeviceSlot(d.Index)
	framework, driver := c.boundLevel(&d.Framework, a.details[heap.AccountFramework].MeterOf(slot)),
		c.boundLevel(&d.Driver, a.details[heap.AccountDriver].MeterOf(slot))
	var peak, live uint64
	d.ReservedBytesPeakLower, d.ReservedBytesCurrentLower = &peak, &live
	if slot >= len(c.holdings.Devices) || c.narrowed {
		return
	}
	h := &c.holdings.Devices[slot]
	// nothing that the last counters do not know of can have ended since
	last := h.Reported == h.Seen && h.Reported > c.losses.until && !c.noLowerBound()
	blocks, held := c.trustedCounters()
	if blocks && h.Counted {
		framework.raise(h.Last.AllocatedBytesPeak, 0)
		if last {
			framework.raise(0, h.Last.AllocatedBytes)
		}
	}
	if !h.Counted || !held && c.holdings.FromDriver() {
		return
	}
	peak = h.Last.ReservedBytesPeak
	if last && (h.Reported > c.losses.freed || !c.holdings.FromDriver()) {
		live = h.Last.ReservedBytes
	}
	if c.holdings.FromDriver() {
		driver.raise(peak, live)
	}
}

// trustedCounters reports which of the framework's counters counted the same as the replay as long as nothing was lost:
// its blocks, and what it holds from the driver.
func (c *certainty) trustedCounters() (blocks, held bool) {
	h, l := c.holdings, c.losses
	blocks, held = h.Allocated == device.Agrees, h.Reserved == device.Agrees
	if c.bounds.Placed {
		blocks, held = blocks && l.allocated, held && l.reserved
	}
	return blocks, held
}

// findExact lists what has no uncertainty left.
func findExact(b *report.Bounds, s *report.Summary) {
	add := func(path string, lower *uint64, bytes uint64) {
		if b.RecordedIsUpper && *lower >= bytes {
			b.Exact = append(b.Exact, path)
		}
	}
	level := func(path string, l *report.Level) {
		if !l.Empty() {
			add(path+".peak_bytes", l.PeakBytesLower, l.PeakBytes)
			add(path+".live_bytes", l.LiveBytesLower, l.LiveBytes)
		}
	}
	level("driver", &s.Driver)
	level("framework", &s.Framework)
	for a := range heap.AccountCount {
		if l, used := s.Other[a.String()]; used {
			level("other_memory."+a.String(), &l)
		}
	}
	for i := range s.Devices {
		if s.Devices[i].Reported != nil {
			b.Exact = append(b.Exact, "devices.reported")
			break
		}
	}
}
