package plot

import (
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// sampled is a log of a device: 3 bytes are in use at first, 10 at the most.
func sampled() *report.Summary {
	s := &report.Summary{Driver: report.Level{PeakBytes: 10, AllocCount: 3},
		Heights: []report.Heights{{Level: "driver", WidthNS: 100, PeakBytes: []uint64{8, 10, 3}}}}
	s.Process.DurationNS = 300
	s.History = &report.History{Level: "driver", Times: []int64{0, 50, 110, 200, 200},
		Owners: []report.HistoryOwner{{Keys: []string{"x"}}}, By: []string{"tag"},
		Blocks: []report.HistoryBlock{{Born: 0, Died: 5, Size: 3}, {Born: 1, Died: 4, Size: 5},
			{Born: 2, Died: 3, Size: 2}}}
	return s
}

// The first interval holds more than the run's beginning: the baseline is the memory at time 0.
func TestBaselineIsInitialMemory(t *testing.T) {
	c := mustMake(t, "overlay", Options{Baseline: true}, sampled())
	if s := c.Series[0]; !slices.Equal(s.Bytes, []int64{5, 7, 0, 0}) || !strings.Contains(s.Name, "peak 7 B") {
		t.Errorf("%+v", s)
	}
}

func TestOverlayAcrossEvents(t *testing.T) {
	c := mustMake(t, "overlay", Options{Events: true, Baseline: true, Align: true}, sampled(), sampled())
	if s := c.Series[1]; c.Time || c.XLabel != "allocations and frees" || !slices.Equal(s.X, []int64{0, 1, 2, 3, 4}) ||
		!slices.Equal(s.Bytes, []int64{5, 7, 5, 0, 0}) {
		t.Errorf("%+v of %+v", s, c)
	}
	short := sampled()
	short.History.LeftOut = 1
	if _, err := Make("overlay", []Run{{Name: "a", Summary: sampled()}, {Name: "b", Summary: short}},
		Options{Events: true}); err == nil ||
		!strings.Contains(err.Error(), "b: not every block of its driver memory is known") {
		t.Errorf("blocks are missing: %v", err)
	}
	many := &report.History{Times: make([]int64, 100_000)}
	for i := range uint32(50_000) {
		many.Blocks = append(many.Blocks, report.HistoryBlock{Born: 2 * i, Died: 2*i + 1, Size: uint64(i % 777)})
	}
	if x, bytes := eventHeights(many); len(x) != overlayColumns+1 || len(bytes) != len(x) || slices.Max(bytes) != 776 {
		t.Errorf("%d values, highest %d", len(x), slices.Max(bytes))
	}
}
