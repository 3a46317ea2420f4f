package analyzer

import (
	"cmp"

	"memtrace/analyzer/device"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// deviceMoments keeps the state of devices at some of their samples.
type deviceMoments struct {
	devices []devicePicks // by device slot
	moment  *moment       // collector.moment as of the latest sample
	asked   int64         // time of the moment that Options.At names
	isAsked bool
}

// devicePicks is the whole state of one device at three of its samples.
type devicePicks struct {
	latest  *deviceMoment
	highest *deviceMoment // the process's own share was largest
	nearest *deviceMoment // to the moment asked for
}

// of returns the picks of a device, which may be none.
func (k *deviceMoments) of(slot int) *devicePicks { return meter.Slot(&k.devices, slot) }

// deviceMoment is a device's state at a sample.
type deviceMoment struct {
	sample    report.Sample
	sizes     report.SizesAt
	held      [heap.AccountCount][]profile.Held // driver and framework: live bytes by origin
	byLibrary []uint64                          // driver bytes
}

// sample takes in what a device reported.
func (c *collector) sample(e *trace.Event) {
	if !c.filter.HasDevice(e.Device) {
		return
	}
	s, sizes, ok := c.device.Samples.Add(e, c.heap, &c.device.Sizes, c.resolver.Tables)
	if !ok {
		return
	}
	slot := profile.DeviceSlot(e.Device)
	picks := c.picks.of(slot)
	c.noteAsked()
	if len(c.groupings) > 0 {
		picks.keep(s, c.picks.asked, c.picks.isAsked, func() *deviceMoment { return c.deviceMoment(slot, s, sizes) })
	}
}

// keep makes a copy of the state if the sample is the best so far for one of the moments.
func (b *devicePicks) keep(s report.Sample, asked int64, isAsked bool, copyState func() *deviceMoment) {
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

// noteAsked looks whether the moment that was asked for has come since the last sample. If so, the last sample is the
// nearest one until a nearer one comes.
func (c *collector) noteAsked() {
	k := &c.picks
	switch {
	case c.want.kind == momentPeak:
		t := c.details[c.mainSoFar()].Total.PeakTime
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
	if c.details[heap.AccountFramework].Total.Allocs > 0 {
		return heap.AccountFramework
	}
	return heap.AccountDriver
}

// deviceMoment copies a device's state. It walks over the cells: samples that are worth it are seconds apart.
func (c *collector) deviceMoment(slot int, s report.Sample, sizes report.SizesAt) *deviceMoment {
	m := &deviceMoment{sample: s, sizes: sizes}
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		m.held[a] = c.details[a].Cells.Holding(func(v *profile.Cell) bool { return profile.DeviceSlot(v.Device) == slot }, currentShare, currentShare)
	}
	if slot < len(c.device.Holdings.Devices) {
		m.byLibrary = collect(c.device.Holdings.Devices[slot].ByLibrary, func(v *device.LibraryBytes) uint64 { return v.Current })
	}
	return m
}

// nearestTo returns the state at the sample that stands for a moment of Options.At; nil without a sample.
func (b *devicePicks) nearestTo(want At) *deviceMoment {
	if want.kind == momentExit {
		return b.latest
	}
	return cmp.Or(b.nearest, b.latest)
}
