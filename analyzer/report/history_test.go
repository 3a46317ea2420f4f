package report

import "testing"

// A picture leaves out what lies before the first and behind the last change, but not where that is little.
func TestInMotion(t *testing.T) {
	h := &History{Times: []int64{4000, 4500, 5000}}
	for _, c := range []struct{ begin, end, from, to int64 }{
		{0, 10_000, 3990, 5010}, {0, 5000, 3990, 5000}, {3995, 5005, 3995, 5005}, {3950, 5050, 3950, 5050},
	} {
		if from, to := h.InMotion(&Summary{}, c.begin, c.end); from != c.from || to != c.to {
			t.Errorf("%d to %d: %d to %d, want %d to %d", c.begin, c.end, from, to, c.from, c.to)
		}
	}
}
