package timeline

import "memtrace/analyzer/report"

// phase is the row of allocations in one phase that goes on.
type phase struct {
	name string // "": none
	to   int64  // the latest allocation
}

// Phase takes in an allocation in a phase of a training program, "" for none, at a time that was reached. What passes
// between two allocations in a row belongs to their phase, in every stretch that it lies in.
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

// passed divides a time among the stretches that it lies in.
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
