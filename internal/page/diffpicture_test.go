package page

import (
	"fmt"
	"slices"
	"testing"

	"memtrace/analyzer/report"
)

// Iterations of different numbers of events are equally wide, each column has its highest moment, and a run of half as
// many iterations takes half the width.
func TestOutlineAlong(t *testing.T) {
	levels := []uint64{1, 9, 1, 2, 3, 4, 5, 6, 7, 8}
	long, short := outlineAlong(levels, []int{0, 3, 10}, 2), outlineAlong(levels[:3], []int{0, 3}, 2)
	if len(long) != outlineColumns || len(short) != outlineColumns/2 {
		t.Fatalf("%d and %d columns", len(long), len(short))
	}
	half := outlineColumns / 2
	if slices.Max(long[:half]) != 9 || slices.Max(long[half+1:]) != 8 || long[half+1] != 2 ||
		!slices.Equal(long[:half-1], short[:half-1]) {
		t.Errorf("%v\n%v", long, short)
	}
	if few := outlineAlong(make([]uint64, 5000), []int{0, 5000}, 1); len(few) != outlineColumns {
		t.Errorf("%d columns", len(few))
	}
}

// Iterations begin where the previous one ended; the part after the last end is none.
func TestIterationEvents(t *testing.T) {
	s := &report.Summary{History: &report.History{Times: []int64{5, 10, 15, 20, 25, 30}},
		Training: &report.Training{IterationsBy: report.IterationsByOptimizer, Iterations: []report.Iteration{
			{Ended: true, EndNS: 10}, {Ended: true, StartNS: 10, EndNS: 22}, {StartNS: 22, EndNS: 30}}}}
	if got := iterationEvents(s); !slices.Equal(got, []int{0, 2, 4}) {
		t.Errorf("%v", got)
	}
	s.Training.IterationsBy = report.IterationsByNothing
	if got := iterationEvents(s); got != nil {
		t.Errorf("%v without iterations", got)
	}
}

// Axes have few values, and round ones.
func TestTicks(t *testing.T) {
	if got := fmt.Sprint(ticksUp(5 << 30)); got != "[{100.00 0 B} {60.00 2 GiB} {20.00 4 GiB}]" {
		t.Error(got)
	}
	count := func(v int64) string { return fmt.Sprint(v) }
	const want = "[{20.00 500} {40.00 1000} {60.00 1500} {80.00 2000} {100.00 2500}]"
	if got := fmt.Sprint(ticksAlong(2500, count)); got != want {
		t.Error(got)
	}
	for span := int64(1); span < 1<<50; span = span*3 + 1 {
		if n := len(ticksAlong(span, count)); n < 1 || n > 9 {
			t.Errorf("%d values up to %d", n, span)
		}
	}
}
