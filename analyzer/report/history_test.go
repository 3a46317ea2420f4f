package report

import "testing"

// A picture leaves out the time before the first and after the last change, but not if it is short.
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

// The line of growth has the growth's slope, and touches the lowest moments while memory grows.
func TestGrowthLine(t *testing.T) {
	h := &History{Level: LevelFramework, Times: []int64{0, 10, 15, 20, 25, 30, 35, 99},
		Levels: []uint64{5, 100, 160, 110, 170, 120, 180, 0}}
	trend := &Trend{Level: LevelFramework, Kind: GrowthSteady, Bytes: 20, FromTimeNS: 10, ToTimeNS: 30}
	if from, to, grows := h.GrowthLine(trend); !grows || from != 100 || to != 120 {
		t.Errorf("from %d to %d, %t", from, to, grows)
	}
	trend.Level = LevelDriver
	if _, _, grows := h.GrowthLine(trend); grows {
		t.Error("another level grows")
	}
}
