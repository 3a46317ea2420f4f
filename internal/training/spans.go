package training

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/profile"
)

// spans are the stretches of time that belong to phases. Their number is bounded: beyond it each stands for twice as
// many rows of allocations. A row is added once it is over, so that an allocation costs two additions.
type spans struct {
	list []report.PhaseSpan
	rows int // that a span stands for
	last int // rows in the last span
	row
}

// row is allocations that follow each other in one phase.
type row struct {
	phase    uint8
	from, to int64 // of the first and of the latest allocation
	allocs   uint64
}

// newSpans begins without a phase.
func newSpans() spans { return spans{rows: 1, row: row{phase: phaseOther}} }

// opened takes in an allocation. A late one counts at the latest time so far.
func (s *spans) opened(phase uint8, time int64) {
	time = max(time, s.row.to)
	if phase != s.row.phase {
		s.end()
		s.row = row{phase: phase, from: time}
	}
	s.row.to = time
	s.row.allocs++
}

// end adds the row that goes on to the list.
func (s *spans) end() {
	if s.row.phase == phaseOther {
		return
	}
	if s.last++; len(s.list) == 0 || s.last > s.rows {
		if len(s.list) == report.MaxPhaseSpans {
			s.list = report.JoinPairs(s.list, report.JoinPhaseSpan)
			s.rows *= 2
		}
		s.list, s.last = append(s.list, report.PhaseSpan{FromNS: s.row.from}), 1
	}
	v := &s.list[len(s.list)-1]
	v.ToNS, v.Parts = s.row.to, report.AddPhase(v.Parts, profile.PhaseName(s.row.phase), s.row.to-s.row.from,
		s.row.allocs)
}

// values are the spans with the row that goes on, which goes on.
func (s *spans) values() []report.PhaseSpan {
	now := *s
	now.list = slices.Clone(s.list)
	for i := range now.list {
		now.list[i].Parts = slices.Clone(now.list[i].Parts)
	}
	now.end()
	return now.list
}
