package report

// PhaseSpan is a stretch of time in which the main level's allocations were made in one phase of a training program:
// from the first of them in a row to the last. Where there are more than MaxPhaseSpans of them, those that follow each
// other are joined, and the span begins with the first one and ends with the last one; its parts stay exact.
type PhaseSpan struct {
	FromNS int64       `json:"from_ns"`
	ToNS   int64       `json:"to_ns"`
	Parts  []PhasePart `json:"parts"` // in the order of their first allocations; several only of joined spans
}

// PhasePart is how much of a stretch of time belongs to a phase.
type PhasePart struct {
	Phase  string `json:"phase"`       // one of rules.Words(rules.Phase), but for "other"
	NS     int64  `json:"ns"`          // from a row's first allocation to its last, added up over rows
	Allocs uint64 `json:"alloc_count"` // allocations in the phase
}

// MaxPhaseSpans bounds the phases of a run.
const MaxPhaseSpans = 2048

// AddPhase adds to a phase's part of a list.
func AddPhase(list []PhasePart, phase string, ns int64, allocs uint64) []PhasePart {
	for i := range list {
		if list[i].Phase == phase {
			list[i].NS += ns
			list[i].Allocs += allocs
			return list
		}
	}
	return append(list, PhasePart{phase, ns, allocs})
}

// JoinPhases adds up two lists of parts.
func JoinPhases(a, b []PhasePart) []PhasePart {
	for _, p := range b {
		a = AddPhase(a, p.Phase, p.NS, p.Allocs)
	}
	return a
}

// JoinPhaseSpan joins two spans that follow each other.
func JoinPhaseSpan(a, b PhaseSpan) PhaseSpan {
	return PhaseSpan{a.FromNS, b.ToNS, JoinPhases(append([]PhasePart(nil), a.Parts...), b.Parts)}
}
