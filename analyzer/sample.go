package analyzer

import (
	"cmp"

	"memtrace/analyzer/report"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// sampleFigure keeps the state of devices at some of their samples.
type sampleFigure struct {
	noFigure
	r *replayer
	deviceMoments
}

// deviceMoments are the samples that are kept.
type deviceMoments struct {
	devices []devicePicks // by device slot
	peak    sampledMoment // of the level that reports put first
	moment  sampledMoment // that the replay keeps: the one that Options.At names
}

// sampledMoment is a moment that samples are looked for nearby.
type sampledMoment struct {
	time  int64
	known bool          // it came, as far as the trace was read
	state *moment.State // nil for the peak
}

// devicePicks is the whole state of one device at some of its samples.
type devicePicks struct {
	latest     *deviceMoment
	highest    *deviceMoment // the process's own share was largest; of equal ones the nearest to the peak so far
	nearPeak   *deviceMoment // nearest to the peak
	nearMoment *deviceMoment // nearest to the moment that is kept
}

// of returns the picks of a device, which may be none.
func (k *deviceMoments) of(slot int) *devicePicks { return heap.Slot(&k.devices, slot) }

// deviceMoment is a device's state at a sample.
type deviceMoment struct {
	sample    report.Sample
	sizes     report.SizesAt
	held      [heap.AccountCount][]profile.Held // driver and framework: live bytes by origin
	byLibrary []uint64                          // driver bytes
}

func (f *sampleFigure) needs() need { return need{events: kindsOf(trace.EventSample)} }

// event takes in what a device reported.
func (f *sampleFigure) event(e *trace.Event) {
	r := f.r
	if !r.accounts.filter.HasDevice(e.Device) {
		return
	}
	s, sizes, ok := r.device.Samples.Add(e, r.heap, &r.device.Sizes, r.accounts.resolver.Tables)
	if !ok {
		return
	}
	slot := profile.DeviceSlot(e.Device)
	picks := f.of(slot)
	f.noteMoments()
	if r.accounts.kept != nil {
		picks.keep(s, &f.deviceMoments, func() *deviceMoment { return f.copyState(slot, s, sizes) })
	}
}

func (f *sampleFigure) restart(int64) { f.deviceMoments = deviceMoments{} }

// keep makes a copy of the state if the sample is the best so far for one of the moments.
func (b *devicePicks) keep(s report.Sample, k *deviceMoments, copyState func() *deviceMoment) {
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
	near := func(place **deviceMoment, to sampledMoment) {
		if old := *place; to.known &&
			replaces(old, old != nil && distance(s.TimeNS, to.time) < distance(old.sample.TimeNS, to.time)) {
			take(place)
		}
	}
	near(&b.nearPeak, k.peak)
	near(&b.nearMoment, k.moment)
	if old := b.highest; replaces(old, old != nil && (s.Own() > old.sample.Own() || s.Own() == old.sample.Own() &&
		distance(s.TimeNS, k.peak.time) < distance(old.sample.TimeNS, k.peak.time))) {
		take(&b.highest)
	}
	if replaces(b.latest, true) {
		take(&b.latest)
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// noteMoments looks whether the peak has moved, or the moment that is kept has come, since the last sample. If so, the
// last sample is the nearest one until a nearer one comes.
func (f *sampleFigure) noteMoments() {
	a := &f.r.accounts
	if f.peak.moves(sampledMoment{time: a.details[a.main()].Total.PeakTime, known: true}) {
		for i := range f.devices {
			f.devices[i].nearPeak = f.devices[i].latest
		}
	}
	if m := f.r.moments.kept; m != nil && f.moment.moves(sampledMoment{m.Time, true, m}) {
		for i := range f.devices {
			f.devices[i].nearMoment = f.devices[i].latest
		}
	}
}

// moves takes in which moment it is now, and reports whether that is another one.
func (m *sampledMoment) moves(to sampledMoment) bool {
	moved := *m != to
	*m = to
	return moved
}

// copyState copies a device's state. It walks over the cells: samples that are worth it are seconds apart.
func (f *sampleFigure) copyState(slot int, s report.Sample, sizes report.SizesAt) *deviceMoment {
	m := &deviceMoment{sample: s, sizes: sizes}
	for _, a := range detailedAccounts {
		m.held[a] = f.r.accounts.details[a].Cells.Holding(func(v *profile.Cell) bool {
			return profile.DeviceSlot(v.Device) == slot
		}, currentShare, currentShare)
	}
	if devices := f.r.device.Holdings.Devices; slot < len(devices) {
		m.byLibrary = collect(devices[slot].ByLibrary, func(v *device.LibraryBytes) uint64 {
			return v.Current
		})
	}
	return m
}

// nearestTo returns the state at the sample that stands for a moment of Question.At; nil without a sample.
func (b *devicePicks) nearestTo(want moment.At) *deviceMoment {
	switch want.Kind {
	case moment.Exit:
		return b.latest
	case moment.Peak:
		return cmp.Or(b.nearPeak, b.latest)
	}
	return cmp.Or(b.nearMoment, b.latest)
}
