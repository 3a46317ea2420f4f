package plot

import (
	"slices"
	"testing"
)

// A line that is cut holds at both ends what it held there, and ends with its last change.
func TestCut(t *testing.T) {
	s := Series{X: []int64{10, 20, 30, 40, 50}, Bytes: []int64{1, 2, 3, 3, 3}}
	if end := s.lastChange(); end != 40 {
		t.Errorf("the last change leads up to %d", end)
	}
	for _, c := range []struct {
		from, to int64
		x, bytes []int64
	}{
		{10, 40, []int64{10, 20, 30, 40}, []int64{1, 2, 3, 3}}, {25, 35, []int64{25, 30, 35}, []int64{2, 3, 3}},
		{0, 15, []int64{10, 15}, []int64{1, 1}}, {60, 70, []int64{60, 70}, []int64{3, 3}},
	} {
		if cut := s.cut(c.from, c.to); !slices.Equal(cut.X, c.x) || !slices.Equal(cut.Bytes, c.bytes) {
			t.Errorf("%d to %d: %v, %v", c.from, c.to, cut.X, cut.Bytes)
		}
	}
}
