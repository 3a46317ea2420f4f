package profile

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
)

// StackHealth sums up how complete the call stacks of accounts are. It looks no name up.
func StackHealth(stacks *callstack.Stacks, accounts ...[]StackCount) report.StackHealth {
	h := report.StackHealth{NativeCut: make(map[string]uint64), PythonCut: make(map[string]uint64)}
	for _, counts := range accounts {
		for i := range counts {
			addStackHealth(&h, stacks.Recorded(callstack.PairOf(counts[i].ID)), counts[i].Allocs)
		}
	}
	return h
}

// addStackHealth counts the allocations of a pair of stacks.
func addStackHealth(h *report.StackHealth, recorded callstack.Recorded, allocs uint64) {
	h.AllocCount += allocs
	if recorded.Python {
		h.PythonCount += allocs
	}
	switch {
	case !recorded.Native && !recorded.Python:
		h.NoneCount += allocs
	case recorded.CallerOnly:
		h.CallerOnly += allocs
	}
	if recorded.NativeCut != "" {
		h.NativeCut[recorded.NativeCut] += allocs
	}
	if recorded.PythonCut != "" {
		h.PythonCut[recorded.PythonCut] += allocs
	}
	if recorded.NativeCut != "" || recorded.PythonCut != "" {
		h.CutCount += allocs
	}
}
