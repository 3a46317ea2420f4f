package cause

import "testing"

func TestBeginOfRise(t *testing.T) {
	t.Parallel()
	series := func(f func(i int) uint64) []uint64 {
		v := make([]uint64, 41)
		for i := range v {
			v[i] = f(i)
		}
		return stayed(v)
	}
	for name, c := range map[string]struct {
		v    []uint64
		from int // -1: it does not rise
	}{
		"a line":                  {series(func(i int) uint64 { return uint64(i) }), 0},
		"a line on top of much":   {series(func(i int) uint64 { return 120 + uint64(i) }), 0},
		"far up":                  {series(func(i int) uint64 { return 1<<40 + uint64(i) }), -1},
		"steps":                   {series(func(i int) uint64 { return uint64(i / 8) }), 7},
		"steps, one at the end":   {series(func(i int) uint64 { return uint64(i / 8 * 5) }), 7},
		"level":                   {series(func(int) uint64 { return 7 }), -1},
		"one step":                {series(func(i int) uint64 { return uint64(i / 20) }), -1},
		"flattens out":            {series(func(i int) uint64 { return uint64(min(i, 20)) }), -1},
		"flattens out slowly":     {series(func(i int) uint64 { return uint64(1000 - 1600/(i+2)) }), -1},
		"full, then noise":        {series(func(i int) uint64 { return uint64(50*min(i, 10) + i) }), -1},
		"full at 70 percent":      {series(func(i int) uint64 { return uint64(min(i, 28)) }), -1},
		"full, but for a trifle":  {series(func(i int) uint64 { return uint64(100*min(i, 28) + i/40) }), -1},
		"from a third on":         {series(func(i int) uint64 { return uint64(max(i, 13)) }), 13},
		"behind a large one":      {series(func(i int) uint64 { return uint64(70*min(i, 1) + i) }), 1},
		"in the last third":       {series(func(i int) uint64 { return uint64(max(i, 28)) }), -1},
		"saw":                     {series(func(i int) uint64 { return uint64(i % 10) }), -1},
		"falls":                   {series(func(i int) uint64 { return uint64(40 - i) }), -1},
		"a line with small waves": {series(func(i int) uint64 { return uint64(10*i + i%2*5) }), 0},
		"a line with high waves":  {series(func(i int) uint64 { return uint64(i + i%4*100) }), 0},
	} {
		from, found := beginOfRise(c.v)
		if found != (c.from >= 0) || found && from != c.from {
			t.Errorf("%s: %v from %d, want from %d", name, found, from, c.from)
		}
	}
}
