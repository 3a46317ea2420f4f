package heap

import "memtrace/trace"

// What a bookmark has beyond a keyframe is what was counted since the run's beginning. Each of these is kept and
// brought back whole, number by number. Where records were lost, no bookmark is made, so that nothing here is
// uncertain.

// Keep keeps a meter.
func (m *Meter) Keep(t *trace.Numbers) {
	t.Put(m.Current, m.Peak, m.Epoch, m.Allocs, m.Frees, m.Refused, m.AllocBytes)
	t.PutSigned(m.PeakTime)
}

// Restore brings back what Keep kept.
func (m *Meter) Restore(t *trace.Numbers) {
	*m = Meter{Current: t.Next(), Peak: t.Next(), Epoch: t.Next(), Allocs: t.Next(), Frees: t.Next(), Refused: t.Next(),
		AllocBytes: t.Next(), PeakTime: t.Signed()}
}

// Keep keeps a share.
func (s *Share) Keep(t *trace.Numbers) { t.Put(s.Current, s.AtPeak, s.Epoch) }

// Restore brings back what Keep kept.
func (s *Share) Restore(t *trace.Numbers) { *s = Share{t.Next(), t.Next(), t.Next()} }

// Keep keeps a series.
func (h *HeightSeries) Keep(t *trace.Numbers) {
	t.PutSigned(h.width, h.from, h.until, h.changed)
	t.Put(h.live, uint64(len(h.highs)))
	t.Put(h.highs...)
}

// Restore brings back what Keep kept.
func (h *HeightSeries) Restore(t *trace.Numbers) {
	*h = HeightSeries{width: t.Signed(), from: t.Signed(), until: t.Signed(), changed: t.Signed(),
		live: t.Next()}
	n := t.Next()
	if n > heightBins || (n == 0) != (h.width == 0) || h.width < 0 {
		t.Fail()
		*h = HeightSeries{}
		return
	}
	for range n {
		h.highs = append(h.highs, t.Next())
	}
}

func (l *Lifetimes) fields() []*uint64 {
	list := []*uint64{&l.freed, &l.temporary, &l.tempBytes}
	for i := range l.count {
		list = append(list, &l.count[i], &l.bytes[i])
	}
	return list
}

// Keep keeps a histogram.
func (l *Lifetimes) Keep(t *trace.Numbers) {
	for _, v := range l.fields() {
		t.Put(*v)
	}
}

// Restore brings back what Keep kept.
func (l *Lifetimes) Restore(t *trace.Numbers) {
	for _, v := range l.fields() {
		*v = t.Next()
	}
}
