package profile

import (
	"maps"
	"slices"

	"memtrace/internal/heap"
	"memtrace/trace"
)

// What of profiles stands in a keyframe; names of tables begin with "profile.".

// Keep keeps the places in the order of their numbers.
func (p *Places) Keep(s *trace.State) {
	t := s.Table("profile.places")
	for _, at := range p.list {
		t.Put(at.Stream, uint64(at.Pool))
	}
}

// Restore brings back what Keep kept.
func (p *Places) Restore(s *trace.State) {
	for t := s.Table("profile.places"); t.More(); {
		p.add(Place{t.Next(), t.ID()})
	}
}

// HasOwnPools reports whether there are pools of the program's own.
func (p *Places) HasOwnPools() bool {
	return slices.ContainsFunc(p.list, func(at Place) bool { return at.Pool >= trace.OwnPool })
}

// Keep keeps the names of modules.
func (m *ModuleNames) Keep(s *trace.State) {
	for name, of := range map[string]map[uint64]trace.StringID{"profile.modules": m.latest, "profile.first": m.First} {
		t := s.Table(name)
		for _, object := range slices.Sorted(maps.Keys(of)) {
			t.Put(object, uint64(of[object]))
		}
	}
}

// Restore brings back what Keep kept. First names that are known from reading ahead stay.
func (m *ModuleNames) Restore(s *trace.State) {
	read := func(name string, to *map[uint64]trace.StringID) {
		for t := s.Table(name); t.More(); {
			if *to == nil {
				*to = make(map[uint64]trace.StringID)
			}
			(*to)[t.Next()] = trace.StringID(t.ID())
		}
	}
	read("profile.modules", &m.latest)
	if m.First == nil {
		read("profile.first", &m.First)
	}
	m.changes++
}

// Keep keeps whose memory is followed, and when the last allocation was.
func (h *HeldSeries) Keep(s *trace.State) {
	t := s.Table("profile.owners")
	t.PutSigned(h.LastTimeNS)
	for i := range h.owners {
		t.Put(uint64(h.owners[i].account), h.owners[i].id)
	}
}

// Restore brings back what Keep kept, before the live blocks come.
func (h *HeldSeries) Restore(s *trace.State) (lastTimeNS int64) {
	t := s.Table("profile.owners")
	lastTimeNS = t.Signed()
	for t.More() {
		account, id := t.Next(), t.Next()
		if account >= uint64(heap.AccountCount) {
			t.Fail()
			break
		}
		h.owner(heap.Account(account), id)
	}
	return lastTimeNS
}

// Begin makes it known that requests are reported.
func (r *Requests) Begin(d *AccountStats) {
	if !r.known {
		r.begin(d)
	}
}

// Keep keeps what a meter counted of the past.
func keepMeter(t *trace.Numbers, m *heap.Meter) {
	t.Put(m.Allocs, m.Frees, m.Refused, m.AllocBytes)
}

func restoreMeter(t *trace.Numbers, m *heap.Meter) {
	m.Allocs, m.Frees, m.Refused, m.AllocBytes = t.Next(), t.Next(), t.Next(), t.Next()
}

// KeepMeters keeps the counts of an account.
func KeepMeters(t *trace.Numbers, total *heap.Meter, devices []DeviceMeter) {
	keepMeter(t, total)
	t.Put(uint64(len(devices)))
	for i := range devices {
		keepMeter(t, &devices[i].Meter)
	}
}

// RestoreMeters brings back what KeepMeters kept.
func RestoreMeters(t *trace.Numbers, total *heap.Meter, devices *[]DeviceMeter) {
	restoreMeter(t, total)
	for i := range min(t.Next(), heap.MaxSlots) {
		restoreMeter(t, &heap.Slot(devices, int(i)).Meter)
	}
}
