package rewrite

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// seenKey names events of which a window needs only some: marks by name, samples by device, pools by handle.
type seenKey struct {
	of     uint64
	device int16
	object cuda.ObjectKind
	kind   trace.EventKind
}

// firstLast are the rows of such events.
type firstLast struct {
	first, last, highest int32
}

// maxMarks is how many names of marks are moments of a window: what was live then stays.
const maxMarks = 64

// thinRepeats drops marks, steps, epochs, samples and reports of pools between those that stay, and makes moments of
// what reports look at: marks and samples.
func (t *Thinner) thinRepeats(rows int) {
	clear(t.seen)
	for i := range t.rows[:rows] {
		e := &t.rows[i]
		if e.Kind == trace.EventLaunch {
			t.notes[i].drop = true
			continue
		}
		key, repeats := repeated(e)
		if !repeats {
			continue
		}
		row := int32(i)
		v, known := t.seen[key]
		if !known {
			v = firstLast{row, row, row}
		}
		v.last = row
		if e.Size > t.rows[v.highest].Size {
			v.highest = row
		}
		t.seen[key] = v
		t.notes[i].drop = true
	}
	t.keepRepeats(rows)
}

// keepRepeats picks those that stay.
func (t *Thinner) keepRepeats(rows int) {
	marks := 0
	for i := range t.rows[:rows] {
		key, repeats := repeated(&t.rows[i])
		v := t.seen[key]
		if !repeats || v.first != int32(i) {
			continue
		}
		t.notes[v.last].drop = false
		switch key.kind {
		case trace.EventMark:
			t.notes[v.first].drop = false
			if marks++; marks <= maxMarks {
				t.moments = append(t.moments, v.first, v.last)
			}
		case trace.EventStep, trace.EventEpoch, trace.EventName:
			t.notes[v.first].drop = false
		case trace.EventSample:
			t.notes[v.highest].drop = false
			t.moments = append(t.moments, v.last, v.highest)
		}
	}
}

// keepPools keeps, for every moment, the latest report of each pool before it.
func (t *Thinner) keepPools(rows int) {
	clear(t.seen)
	moments := t.moments
	for i := range t.rows[:rows] {
		if key, repeats := repeated(&t.rows[i]); repeats && key.kind == trace.EventReserve {
			t.seen[key] = firstLast{last: int32(i)}
		}
		for ; len(moments) > 0 && moments[0] == int32(i); moments = moments[1:] {
			for _, v := range t.seen {
				t.notes[v.last].drop = false
			}
		}
	}
}

// repeated says what an event repeats. Samples are told apart by their occasion: of those that memory running out, the
// peak or the end brought about, the last stays as well.
func repeated(e *trace.Event) (key seenKey, repeats bool) {
	switch e.Kind {
	case trace.EventMark:
		return seenKey{kind: e.Kind, of: uint64(e.Name)}, true
	case trace.EventStep, trace.EventEpoch:
		return seenKey{kind: e.Kind}, true
	case trace.EventSample:
		return seenKey{kind: e.Kind, of: uint64(e.Name), device: e.Device}, true
	case trace.EventName:
		return seenKey{kind: e.Kind, of: e.Handle}, e.Category == trace.CategoryStep
	case trace.EventAsk:
		return seenKey{kind: e.Kind, of: uint64(e.Stack)<<32 | uint64(e.PyStack), device: e.Device}, true
	case trace.EventReserve:
		return seenKey{e.Addr, e.Device, e.Object, e.Kind}, e.Flags&trace.FlagLate == 0
	}
	return seenKey{}, false
}
