package rewrite

import "memtrace/trace"

// dropWaits drops the waiting of blocks for other streams that begins and is over between two moments of the window.
func (t *Thinner) dropWaits(rows int) {
	clear(t.waits)
	for i := range t.rows[:rows] {
		switch e := &t.rows[i]; e.Kind {
		case trace.EventWait:
			t.waits[e.Handle] = append(t.waits[e.Handle], int32(i))
		case trace.EventComplete:
			t.notes[i].drop = t.completed(e.Handle, int32(i))
		}
	}
	for event := range t.waits {
		t.awaited[event] = true
	}
}

// completed drops what waited for an event that is complete, and reports whether nothing that stays did.
func (t *Thinner) completed(event uint64, at int32) bool {
	rows := t.waits[event]
	delete(t.waits, event)
	nothing := len(rows) > 0 && !t.awaited[event]
	delete(t.awaited, event)
	for _, row := range rows {
		if t.isMoment(row, at) {
			nothing = false
			continue
		}
		t.notes[row].drop = true
	}
	return nothing
}
