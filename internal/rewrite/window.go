package rewrite

import (
	"slices"
	"sort"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// quietest returns where the full window is to end: in its second half, where least is live of the level that has more
// events, so that few blocks live across the cut.
func (t *Thinner) quietest() int {
	var changes [2]int
	for i := range t.notes {
		if slot := t.notes[i].slot; slot >= 0 && slot < ofOthers {
			changes[slot/ofLevel]++
		}
	}
	level := int16(0)
	if changes[1] > changes[0] {
		level = 1
	}
	var live, least int64
	cut := len(t.rows)
	for i := range t.notes {
		if n := &t.notes[i]; n.slot >= 0 && n.slot/ofLevel == level {
			live += n.bytes
		}
		if at := i + 1; at == len(t.rows)/2 || at > len(t.rows)/2 && live < least {
			cut, least = at, live
		}
	}
	return cut
}

// closeWindow decides what stays of the first rows of the window, hands that out, and begins the next window with the
// others.
func (t *Thinner) closeWindow(rows int) {
	t.findMoments(rows)
	t.thinRepeats(rows)
	slices.Sort(t.moments)
	t.pairs(rows)
	t.keepPools(rows)
	t.dropWaits(rows)
	t.keepOperators(rows)
	for i := range t.rows[:rows] {
		if n := &t.notes[i]; n.drop || t.rows[i].Kind == trace.EventName && n.peer != 0 && t.notes[n.peer-1].drop {
			t.left.Leave(&t.rows[i], heap.AccountOf(&t.rows[i]).String())
			continue
		}
		t.out = append(t.out, t.rows[i])
	}
	t.shift(int32(rows))
}

// findMoments collects the rows behind which everything that is live stays, and moves the totals to the window's end.
func (t *Thinner) findMoments(rows int) {
	t.moments = t.moments[:0]
	live, highest := t.base, t.base
	var at [slots]int32
	for i := range at {
		at[i] = -1 // at the window's beginning: what is live then stays anyhow
	}
	change := func(row int32, slot int16, bytes int64) {
		grow := func(s int16) {
			if live[s] += bytes; live[s] > highest[s] {
				highest[s], at[s] = live[s], row
			}
		}
		grow(slot)
		if slot < ofOthers {
			grow(slot/ofLevel*ofLevel + devices) // over all devices
		}
	}
	more := t.more
	for i := range t.rows[:rows] {
		if n := &t.notes[i]; n.slot >= 0 {
			change(int32(i), n.slot, n.bytes)
		}
		for ; len(more) > 0 && more[0].row == int32(i); more = more[1:] {
			change(int32(i), more[0].slot, more[0].bytes)
		}
		t.momentOf(int32(i))
	}
	t.more = append(t.more[:0], more...)
	t.base = live
	for _, row := range at {
		if row >= 0 {
			t.moments = append(t.moments, row)
		}
	}
}

// momentOf makes moments of memory running out, and of the highest value of each counter that a framework reports.
func (t *Thinner) momentOf(row int32) {
	e := &t.rows[row]
	if e.Kind == trace.EventOOM {
		t.moments = append(t.moments, row)
	}
	if e.Kind != trace.EventAlloc || e.Level != cuda.LevelFramework || e.Status != 0 || e.Flags&trace.FlagLate != 0 {
		return
	}
	device := min(uint16(e.Device), devices-1)
	for i, value := range [...]uint64{e.Allocated, e.Reserved} {
		if value > t.highest[i][device] {
			t.highest[i][device] = value
			t.moments = append(t.moments, row)
		}
	}
}

// pairs drops allocations whose free is in the window, with their frees, if they were live at no moment.
func (t *Thinner) pairs(rows int) {
	for i := range t.rows[:rows] {
		n := &t.notes[i]
		if t.rows[i].Kind != trace.EventAlloc || n.keep || n.peer == 0 {
			continue
		}
		free := n.peer - 1
		if int(free) >= rows || t.notes[free].keep || t.isMoment(int32(i), free) {
			continue
		}
		n.drop, t.notes[free].drop = true, true
	}
}

// isMoment reports whether a moment lies between an allocation and its free.
func (t *Thinner) isMoment(alloc, free int32) bool {
	next := sort.Search(len(t.moments), func(k int) bool { return t.moments[k] >= alloc })
	return next < len(t.moments) && t.moments[next] < free
}

// operator names a framework's operator, whose backward pass names it again.
type operator struct {
	number uint32
	thread uint16
}

// keepOperators keeps, for each allocation of a backward pass that stays, the allocation in the window that tells what
// its operator was.
func (t *Thinner) keepOperators(rows int) {
	clear(t.forward)
	for i := range t.rows[:rows] {
		e := &t.rows[i]
		if e.Kind != trace.EventAlloc || e.Op == 0 {
			continue
		}
		of := operator{e.Op, e.OpThread}
		if e.Flags&trace.FlagBackward == 0 {
			t.forward[of] = int32(i)
			continue
		}
		if row, known := t.forward[of]; known && !t.notes[i].drop && t.notes[row].drop {
			t.notes[row].drop, t.notes[t.notes[row].peer-1].drop = false, false
		}
	}
}

// shift begins the next window with the rows behind the first ones.
func (t *Thinner) shift(rows int32) {
	for i := range t.rows[:rows] {
		if n := &t.notes[i]; t.rows[i].Kind == trace.EventAlloc && t.openedAt(n.block) == int32(i)+1 {
			*t.opened.At(n.block) = 0
		}
	}
	left := copy(t.rows, t.rows[rows:])
	copy(t.notes, t.notes[rows:])
	t.rows, t.notes = t.rows[:left], t.notes[:left]
	for i := range t.notes {
		n := &t.notes[i]
		n.peer = max(0, n.peer-rows)
		if t.rows[i].Kind == trace.EventAlloc && t.openedAt(n.block) == int32(i)+rows+1 {
			*t.opened.At(n.block) = int32(i) + 1
		}
	}
	for i := range t.more {
		t.more[i].row -= rows
	}
}
