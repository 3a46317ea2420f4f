package training

import (
	"math/rand/v2"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/profile"
)

// TestSpansLoseNoTime: few rows of allocations are spans of their own; many are joined, and what each phase took and
// how often it allocated stays exact.
func TestSpansLoseNoTime(t *testing.T) {
	phases := []uint8{phaseForward, phaseBackward, phaseOptimizer, phaseOther}
	for _, allocs := range []int{0, 1, 50, 3 * report.MaxPhaseSpans, 40 * report.MaxPhaseSpans} {
		rng, s := rand.New(rand.NewPCG(uint64(allocs), 7)), newSpans()
		var rows []report.PhaseSpan
		var want []report.PhasePart
		now, last := int64(0), phaseOther
		for i := range allocs {
			phase, time := phases[rng.IntN(len(phases))], now+int64(rng.IntN(1000))
			if rng.IntN(2) == 0 {
				phase = last
			}
			name := profile.PhaseName(phase)
			if s.opened(phase, time-int64(rng.IntN(2)*(i%7)*200)); phase != phaseOther { // some are late
				passed := s.to - now
				if phase != last {
					rows, passed = append(rows, report.PhaseSpan{FromNS: s.to}), 0
				}
				r := &rows[len(rows)-1]
				r.ToNS, r.Parts = s.to, report.AddPhase(r.Parts, name, passed, 1)
				want = report.AddPhase(want, name, passed, 1)
			}
			now, last = s.to, phase
		}
		got := s.values()
		if len(got) > report.MaxPhaseSpans || len(rows) <= report.MaxPhaseSpans && len(got) != len(rows) ||
			len(rows) > report.MaxPhaseSpans && len(got) < report.MaxPhaseSpans/2 {
			t.Fatalf("%d allocations in %d rows: %d spans", allocs, len(rows), len(got))
		}
		var sum []report.PhasePart
		for i, v := range got {
			if sum = report.JoinPhases(sum, v.Parts); v.FromNS > v.ToNS || i > 0 && v.FromNS < got[i-1].ToNS {
				t.Fatalf("span %d is from %d to %d", i, v.FromNS, v.ToNS)
			}
			if len(got) == len(rows) && (v.FromNS != rows[i].FromNS || v.ToNS != rows[i].ToNS || len(v.Parts) != 1 ||
				v.Parts[0] != rows[i].Parts[0]) {
				t.Fatalf("span %d is %+v, want %+v", i, v, rows[i])
			}
		}
		for _, p := range want {
			if before := len(sum); len(report.AddPhase(sum, p.Phase, -p.NS, -p.Allocs)) != before {
				t.Fatalf("no span of %s", p.Phase)
			}
		}
		for _, p := range sum {
			if p.NS != 0 || p.Allocs != 0 {
				t.Errorf("%d allocations: %s differs by %d ns and %d allocations", allocs, p.Phase, p.NS, p.Allocs)
			}
		}
	}
}
