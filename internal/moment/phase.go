package moment

import "memtrace/analyzer/report"

// phase is the current run of allocations in one phase.
type phase struct {
	name string // "": none
	to   int64  // the latest allocation
}

// Phase records an allocation in a phase of a training program, "" for none, at a time that was reached. The time
// between two consecutive allocations of a phase counts for it, in every interval that it overlaps.
func (t *Timeline) Phase(name string, time int64) {
	time = max(time, t.phase.to, t.from)
	if name != "" {
		if name == t.phase.name {
			t.passed(name, t.phase.to, time)
		}
		lane := t.Lane()
		lane.Phases = report.AddPhase(lane.Phases, name, 0, 1)
	}
	t.phase = phase{name, time}
}

// passed divides a time among the intervals that it overlaps.
func (t *Timeline) passed(name string, from, to int64) {
	for from < to {
		bin := min((from-t.from)/t.width, int64(len(t.lanes)-1))
		end := to
		if bin < int64(len(t.lanes)-1) {
			end = min(to, t.from+(bin+1)*t.width)
		}
		lane := &t.lanes[bin]
		lane.Phases = report.AddPhase(lane.Phases, name, end-from, 0)
		from = end
	}
}
