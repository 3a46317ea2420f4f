package training

import (
	"slices"

	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

// spans are the stretches of time that belong to phases. Their number is bounded: beyond it each stands for twice as
// many rows of allocations.
type spans struct {
	list  []report.PhaseSpan
	rows  int // that a span stands for
	last  int // rows in the last span
	phase uint8
	to    int64 // the latest allocation
}

// newSpans begins without a phase.
func newSpans() spans { return spans{rows: 1, phase: phaseOther} }

// opened takes in an allocation. A late one counts at the latest time so far.
func (s *spans) opened(phase uint8, time int64) {
	time = max(time, s.to)
	if phase != phaseOther {
		passed := time - s.to
		if phase != s.phase {
			s.begin(time)
			passed = 0
		}
		v := &s.list[len(s.list)-1]
		v.ToNS, v.Parts = time, report.AddPhase(v.Parts, profile.PhaseName(phase), passed, 1)
	}
	s.phase, s.to = phase, time
}

// begin makes room for a row of allocations.
func (s *spans) begin(time int64) {
	if s.last++; len(s.list) > 0 && s.last <= s.rows {
		return
	}
	if s.last = 1; len(s.list) == report.MaxPhaseSpans {
		s.list = report.JoinPairs(s.list, report.JoinPhaseSpan)
		s.rows *= 2
	}
	s.list = append(s.list, report.PhaseSpan{FromNS: time})
}

func (s *spans) values() []report.PhaseSpan {
	list := slices.Clone(s.list)
	for i := range list {
		list[i].Parts = slices.Clone(list[i].Parts)
	}
	return list
}
