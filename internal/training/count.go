package training

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
)

// tally is the live bytes of many blocks by class, and by module and class.
type tally struct {
	byClass  []uint64
	byModule [][]uint64 // by module and class: bytes plus one, 0 where there is nothing
}

func (y *tally) add(s *slot) {
	*heap.Slot(&y.byClass, int(s.class)) += s.size
	held := heap.Slot(heap.Slot(&y.byModule, int(s.module)), int(s.class))
	*held = max(*held, 1) + s.size
}

func (y *tally) remove(s *slot) {
	y.byClass[s.class] -= s.size
	held := &y.byModule[s.module][s.class]
	if *held -= s.size; *held == 1 {
		*held = 0
	}
}

func (y *tally) clone() tally {
	c := tally{byClass: slices.Clone(y.byClass), byModule: slices.Clone(y.byModule)}
	for i := range c.byModule {
		c.byModule[i] = slices.Clone(c.byModule[i])
	}
	return c
}

// holding lists what there is by module and class.
func (y *tally) holding() map[moduleClass]uint64 {
	held := make(map[moduleClass]uint64)
	for module, classes := range y.byModule {
		for class, bytes := range classes {
			if bytes > 0 {
				held[moduleClass{uint32(module), uint16(class)}] = bytes - 1
			}
		}
	}
	return held
}

// count adds up the changes that wait. goesOn: the iteration does not end with them. What it costs grows with these,
// not with what is live: a program that leaks may have more of that than of anything else.
func (t *Tracker) count(goesOn bool) {
	for i := range t.slots {
		if s := &t.slots[i]; s.closed == stillLive {
			t.classify(s, t.cellOf(s.block))
		}
	}
	held := slices.Clone(t.before.byClass)
	heap.Extend(&held, max(len(held), len(t.classes.names)))
	first := !t.open.counted
	positions := t.replay(held)
	if goesOn || !first || t.highest < 0 || t.open.phases[atPeak].Bytes > t.record {
		t.holdings(positions, first)
	}
	t.open.counted = true
	t.compact(goesOn)
}

// replay goes through the changes, keeps what was highest, and returns the positions of the highest moments; -1: none
// of them, or before the first change.
func (t *Tracker) replay(held []uint64) (positions [momentCount]int32) {
	o := &t.open
	positions = [momentCount]int32{-1, -1, -1, -1}
	var total uint64
	for _, bytes := range held {
		total += bytes
	}
	if !o.counted {
		o.phases[atPeak] = report.IterationMoment{TimeNS: o.StartNS, Phase: phaseWords[phaseOther], Bytes: total,
			Held: slices.Clone(held)}
		o.Highest = slices.Clone(held)
	}
	heap.Extend(&o.Highest, max(len(o.Highest), len(held)))
	for class, bytes := range held { // blocks may be for something else than when they were last counted
		o.Highest[class] = max(o.Highest[class], bytes)
	}
	for i, change := range t.changes {
		t.failedBefore(i, held, total)
		s := &t.slots[change.slot]
		if s.opened != int32(i) {
			held[s.class] -= s.size
			total -= s.size
			continue
		}
		held[s.class] += s.size
		total += s.size
		o.Highest[s.class] = max(o.Highest[s.class], held[s.class])
		if raised(&o.phases[atPeak], total) {
			setMoment(&o.phases[atPeak], change.time, s.phase, held)
			positions[atPeak] = int32(i)
		}
		if m := momentOf(s.phase); m != atPeak && raised(&o.phases[m], total) {
			setMoment(&o.phases[m], change.time, s.phase, held)
			positions[m] = int32(i)
		}
	}
	t.failedBefore(len(t.changes), held, total)
	o.End = held
	return positions
}

// failedBefore notes what was held when the allocator gave up before the change of a number.
func (t *Tracker) failedBefore(n int, held []uint64, total uint64) {
	for i := len(t.failed) - 1; i >= 0 && !t.failed[i].done; i-- {
		if f := &t.failed[i]; f.at <= n {
			f.held.Bytes, f.held.Held, f.done = total, slices.Clone(held), true
		}
	}
}

// raised makes the moment one of more bytes, and reports whether it did.
func raised(m *report.IterationMoment, bytes uint64) bool {
	if bytes <= m.Bytes && m.Held != nil {
		return false
	}
	m.Bytes = bytes
	return true
}

func setMoment(m *report.IterationMoment, time int64, phase uint8, held []uint64) {
	m.TimeNS, m.Phase = time, phaseWords[phase]
	m.Held = append(m.Held[:0], held...)
}

// momentOf says which of an iteration's moments an allocation of a phase may be, besides the peak.
func momentOf(phase uint8) int {
	switch passOf(phase) {
	case phaseForward:
		return atForward
	case phaseBackward:
		return atBackward
	case phaseOptimizer:
		return atOptimizer
	}
	return atPeak
}

// holdings divides what was held at the given positions by module.
func (t *Tracker) holdings(positions [momentCount]int32, first bool) {
	for m, position := range positions {
		if position < 0 && (m != atPeak || !first) {
			continue
		}
		at := t.before.clone()
		t.apply(&at, position)
		t.open.held[m] = at.holding()
	}
}

// apply brings a tally of what was live before the changes to a position among them.
func (t *Tracker) apply(to *tally, position int32) {
	for i, change := range t.changes[:position+1] {
		if s := &t.slots[change.slot]; s.opened == int32(i) {
			to.add(s)
		} else {
			to.remove(s)
		}
	}
}

// compact brings the tally of what was live up to now, and forgets the changes. Most of the blocks came and went since
// the last count: the tally never had them. goesOn: the iteration does not end with them.
func (t *Tracker) compact(goesOn bool) {
	for i := range t.slots {
		switch s := &t.slots[i]; {
		case s.closed == stillLive:
			t.before.add(s)
			t.live.At(s.block).slot = 0
			if goesOn && t.open.Stayed != nil {
				t.noteYoung(s.block)
			}
		case s.opened < 0:
			t.before.remove(s)
			if !s.young {
				t.open.gone(s)
			}
		}
	}
	t.changes, t.slots = t.changes[:0], t.slots[:0]
}

func (t *Tracker) noteYoung(block uint32) {
	if t.young == nil {
		t.young = make(map[uint32]bool)
	}
	t.young[block] = true
}
