package trend

import "testing"

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
