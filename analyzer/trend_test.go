package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

func TestRises(t *testing.T) {
	t.Parallel()
	series := func(f func(i int) uint64) []uint64 {
		v := make([]uint64, 40)
		for i := range v {
			v[i] = f(i)
		}
		return v
	}
	for name, c := range map[string]struct {
		v    []uint64
		want bool
	}{
		"a line":                  {series(func(i int) uint64 { return uint64(i) }), true},
		"a line far up":           {series(func(i int) uint64 { return 1<<40 + uint64(i) }), true},
		"steps":                   {series(func(i int) uint64 { return uint64(i / 5) }), true},
		"level":                   {series(func(int) uint64 { return 7 }), false},
		"one step":                {series(func(i int) uint64 { return uint64(i / 20) }), false},
		"flattens out":            {series(func(i int) uint64 { return uint64(min(i, 20)) }), false},
		"saw":                     {series(func(i int) uint64 { return uint64(i % 10) }), false},
		"falls":                   {series(func(i int) uint64 { return uint64(40 - i) }), false},
		"a line with small waves": {series(func(i int) uint64 { return uint64(10*i + i%2) }), true},
	} {
		if got := rises(c.v); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A leak is told beside memory that others hold for a while and give back; memory that only moves from one place to
// another is none.
func TestTrendBesideOthers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		givenBack uint64 // of 100 bytes that leak
		want      string
	}{"a leak": {0, report.GrowthSteady}, "something smaller ended": {60, report.GrowthSteady}, "memory moves": {100, report.GrowthNone}} {
		s := &story{}
		at := func(e trace.Event, stack trace.StackID) {
			e.Level, e.Mem, e.Stack = cuda.LevelFramework, cuda.MemoryDevice, stack
			s.add(e)
		}
		const rounds = 1000
		at(trace.Event{Kind: trace.EventAlloc, Addr: 1 << 40, Size: c.givenBack*rounds/2 + 1}, stackNowhere)
		for i := range uint64(rounds) {
			if i == rounds*7/8 {
				at(trace.Event{Kind: trace.EventFree, Addr: 1 << 40}, 0)
			}
			at(trace.Event{Kind: trace.EventAlloc, Addr: 1, Size: 5000}, stackNowhere)
			at(trace.Event{Kind: trace.EventAlloc, Addr: 2 + i, Size: 100}, stackProgram)
			at(trace.Event{Kind: trace.EventFree, Addr: 1}, 0)
		}
		if got := s.summary(t, Options{Question: Question{Groupings: []string{"site"}}}).Trend; got.Kind != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
