package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// The figures of a replay in a bookmark.

// keepFigures returns the error of a sample that JSON cannot hold.
func (r runState) keepFigures(s *trace.State) error {
	counts, marks := s.Table("run.iterations"), s.Table("run.marks")
	counts.Put(r.launches.count)
	for _, v := range []*report.Iterations{&r.iterationCounts.steps, &r.iterationCounts.epochs} {
		counts.Put(v.Count, v.FirstNumber, v.LastNumber)
		counts.PutSigned(v.FirstTimeNS, v.LastTimeNS)
	}
	for i := range r.marks.list {
		m := &r.marks.list[i]
		marks.Put(uint64(m.id), m.Count, m.DriverBytes, m.FrameworkBytes, m.sure[0], m.sure[1])
		marks.PutSigned(m.FirstTimeNS, m.LastTimeNS)
	}
	return r.samples.keep(s.Table("run.picks"))
}

func (r runState) restoreFigures(s *trace.State) {
	counts := s.Table("run.iterations")
	r.launches.count = counts.Next()
	for _, v := range []*report.Iterations{&r.iterationCounts.steps, &r.iterationCounts.epochs} {
		*v = report.Iterations{Count: counts.Next(), FirstNumber: counts.Next(), LastNumber: counts.Next(),
			FirstTimeNS: counts.Signed(), LastTimeNS: counts.Signed()}
	}
	r.marks.index = make(map[trace.StringID]int)
	for t := s.Table("run.marks"); t.More(); {
		m := markCount{id: trace.StringID(t.ID())}
		m.Count, m.DriverBytes, m.FrameworkBytes = t.Next(), t.Next(), t.Next()
		m.sure = [2]uint64{t.Next(), t.Next()}
		m.FirstTimeNS, m.LastTimeNS = t.Signed(), t.Signed()
		r.marks.index[m.id] = len(r.marks.list)
		r.marks.list = append(r.marks.list, m)
	}
	r.samples.restore(s.Table("run.picks"), r.accounts.resolver.Places.Len())
}

func (b *devicePicks) places() []**deviceMoment {
	return []**deviceMoment{&b.latest, &b.highest, &b.nearPeak, &b.nearMoment}
}

func (f *sampleFigure) keep(t *trace.Numbers) error {
	t.PutBool(f.peak.known)
	t.PutSigned(f.peak.time)
	for i := range f.devices {
		for _, at := range f.devices[i].places() {
			m := *at
			if t.PutBool(m != nil); m == nil {
				continue
			}
			if err := m.keep(t); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *sampleFigure) restore(t *trace.Numbers, places int) {
	f.peak = sampledMoment{known: t.Bool(), time: t.Signed()}
	for slot := 0; t.More() && slot < heap.MaxSlots; slot++ {
		for _, at := range f.of(slot).places() {
			if t.Bool() {
				*at = &deviceMoment{}
				(*at).restore(t, places)
			}
		}
	}
}

func (m *deviceMoment) keep(t *trace.Numbers) error {
	for _, v := range []any{&m.sample, &m.sizes} {
		if err := t.PutJSON(v); err != nil {
			return err
		}
	}
	for _, a := range detailedAccounts {
		t.Put(uint64(len(m.held[a])))
		for i := range m.held[a] {
			h := &m.held[a][i]
			h.Origin.Keep(t)
			t.Put(h.Bytes, h.Certain, h.Rest, h.Unknown)
		}
	}
	t.Put(uint64(len(m.byLibrary)))
	t.Put(m.byLibrary...)
	return nil
}

func (m *deviceMoment) restore(t *trace.Numbers, places int) {
	t.JSON(&m.sample)
	t.JSON(&m.sizes)
	for _, a := range detailedAccounts {
		m.held[a] = []profile.Held{}
		for n := t.Next(); n > 0 && t.More(); n-- {
			var h profile.Held
			h.Origin.Restore(t, places)
			h.Bytes, h.Certain, h.Rest, h.Unknown = t.Next(), t.Next(), t.Next(), t.Next()
			m.held[a] = append(m.held[a], h)
		}
	}
	for n := t.Next(); n > 0 && t.More(); n-- {
		m.byLibrary = append(m.byLibrary, t.Next())
	}
}
