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
		from, found := beginOfRise(c.v, nil)
		if found != (c.from >= 0) || found && from != c.from {
			t.Errorf("%s: %v from %d, want from %d", name, found, from, c.from)
		}
	}
}

// Without call stacks, a leak of half a MiB in each iteration beside 240 MiB of parameters and state was none.
//
// What rises with most iterations grows, however little it is beside what was there before.
func TestRisesWithIterations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every int // points from a rise to the next
		ended func(i int) int
		rises bool
	}{
		"with each":             {2, func(i int) int { return i / 2 }, true},
		"with every other":      {4, func(i int) int { return i / 2 }, true},
		"now and then":          {8, func(i int) int { return i / 2 }, false},
		"at points of many":     {1, func(i int) int { return 10 * i }, true},
		"in few iterations":     {2, func(i int) int { return i / 20 }, false},
		"in none that is known": {2, nil, false},
	} {
		v, ended := make([]uint64, 65), []int(nil)
		for i := range v {
			v[i] = 1<<20 + 100*uint64(i/c.every)
			if c.ended != nil {
				ended = append(ended, c.ended(i))
			}
		}
		if _, found := beginOfRise(stayed(v), ended); found != c.rises {
			t.Errorf("%s: it rises %v, want %v", name, found, c.rises)
		}
	}
}

// A cache that had filled up an eighth before the end was said to grow.
//
// Memory that stands still while iterations go on has stopped growing, if it rose again and again in every stretch as
// long before. What happens after the last iteration does not count, nor do distances that are usual.
func TestStops(t *testing.T) {
	t.Parallel()
	const last = 74
	filled := func(i int) uint64 { return uint64(100 * (min(i, 66) / 2)) } // like a cache, a rise now and then
	each := func(i int) uint64 { return uint64(100 * i) }
	for name, c := range map[string]struct {
		v          func(i int) uint64
		iterations int // in the run
		until      int // the point by which the last one had ended
		rises      bool
	}{
		"filled":                       {filled, 160, last, false},
		"filled, not known":            {filled, 0, 0, true},
		"filled, few iterations":       {filled, 40, last, true},
		"filled when iterations ended": {filled, 160, 67, true},
		"filled, and one in flight": {func(i int) uint64 { return filled(i) + uint64(i/last*200) }, 160, last,
			false},
		"filled, and a trifle":      {func(i int) uint64 { return filled(i) + uint64(i/68*30) }, 160, last, false},
		"in each iteration":         {each, 160, last, true},
		"in each, then it is saved": {func(i int) uint64 { return each(min(i, 67)) }, 160, 67, true},
		"every 50th of 400":         {func(i int) uint64 { return uint64((i*400/last + 20) / 50) }, 400, last, true},
		"every 50th, early":         {func(i int) uint64 { return uint64((i*400/last + 45) / 50) }, 400, last, true},
		"much now and then":         {func(i int) uint64 { return uint64(i/10*1000 + i) }, 160, last, true},
	} {
		v := make([]uint64, last+1)
		var ended []int
		for i := range v {
			if v[i] = c.v(i); c.iterations > 0 {
				ended = append(ended, min(i, c.until)*c.iterations/c.until)
			}
		}
		if _, found := beginOfRise(stayed(v), ended); found != c.rises {
			t.Errorf("%s: rises: %v", name, found)
		}
	}
}
