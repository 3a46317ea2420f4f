package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// stackHealth counts without looking any name up.
func (c *collector) stackHealth() report.StackHealth {
	h := report.StackHealth{NativeCut: make(map[string]uint64), PythonCut: make(map[string]uint64)}
	tables := c.resolver.Tables
	for _, a := range []heap.Account{heap.AccountDriver, heap.AccountFramework} {
		for _, v := range c.stackCounts(a) {
			pair := callstack.PairOf(v.id)
			native := tables.Stack(pair.Native)
			python, pythonEnd := tables.PyStack(c.links.Split(pair.Python).Backward)
			nativeCut, pythonCut := "", ""
			if len(native) > 0 {
				nativeCut = callstack.CutWords[tables.StackEnd(pair.Native)]
			}
			if len(python) > 0 {
				pythonCut = callstack.CutWords[pythonEnd]
				h.PythonCount += v.Allocs
			}
			h.AllocCount += v.Allocs
			if len(native) == 0 && len(python) == 0 {
				h.NoneCount += v.Allocs
			} else if tables.StackEnd(pair.Native) == trace.StackCaller {
				h.CallerOnly += v.Allocs
			}
			if nativeCut != "" {
				h.NativeCut[nativeCut] += v.Allocs
			}
			if pythonCut != "" {
				h.PythonCut[pythonCut] += v.Allocs
			}
			if nativeCut != "" || pythonCut != "" {
				h.CutCount += v.Allocs
			}
		}
	}
	return h
}
