package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// A leak is told beside memory that others hold for a while and give back; memory that only moves from one place to
// another is none.
func TestTrendBesideOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		givenBack uint64 // of 100 KiB that leak
		want      string
	}{"a leak": {0, report.GrowthSteady}, "something smaller ended": {60, report.GrowthSteady},
		"memory moves": {100, report.GrowthNone}} {
		s := &story{}
		at := func(e trace.Event, stack trace.StackID) {
			e.Level, e.Mem, e.Stack = cuda.LevelFramework, cuda.MemoryDevice, stack
			s.add(e)
		}
		const rounds = 1000
		at(trace.Event{Kind: trace.EventAlloc, Addr: 1 << 40, Size: c.givenBack*rounds*kib + 1}, stackNowhere)
		for i := range uint64(rounds) {
			if i == rounds*7/8 {
				at(trace.Event{Kind: trace.EventFree, Addr: 1 << 40}, 0)
			}
			at(trace.Event{Kind: trace.EventAlloc, Addr: 1, Size: 5000 * kib}, stackNowhere)
			at(trace.Event{Kind: trace.EventAlloc, Addr: 2 + i, Size: 100 * kib}, stackProgram)
			at(trace.Event{Kind: trace.EventFree, Addr: 1}, 0)
		}
		if got := s.summary(t, Options{Question: Question{Groupings: []string{"site"}}}).Trend; got.Kind != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
