package plot

import (
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

const mib = 1 << 20

// placedBlocks is a run with three segments: the first is full, the second holds one small block, the third is empty.
// The small block's owner has a hostile name.
func placedBlocks() *report.Summary {
	s := &report.Summary{Framework: report.Level{PeakBytes: 22*mib + 512, PeakTimeNS: 30, AllocCount: 4}}
	s.History = &report.History{Level: "framework", Times: []int64{10, 20, 30, 40}, By: []string{"category", "site"},
		Owners: []report.HistoryOwner{{Keys: []string{"Parameters", "train.py:1"}},
			{Keys: []string{"</text><script>\x1b", "train.py:2"}}},
		Blocks: []report.HistoryBlock{{Born: 0, Died: 4, Size: 20 * mib, Addr: 0x1000_0000},
			{Born: 1, Died: 4, Size: 512, Addr: 0x4000_0200, Owner: 1},
			{Born: 2, Died: 3, Size: 2 * mib, Addr: 0x7000_0000}},
		Segments: []report.HistorySegment{{Born: 0, Died: 4, Addr: 0x1000_0000, Size: 20 * mib},
			{Born: 0, Died: 4, Addr: 0x4000_0000, Size: 40 * mib},
			{Born: 0, Died: 4, Addr: 0x7000_0000, Size: 2 * mib}}}
	return s
}

func TestSizes(t *testing.T) {
	c := mustMake(t, "sizes", Options{}, placedBlocks())
	if n := len(c.Sizes); n != 16 || c.Sizes[0] != (SizeClass{512, 1024, 512, 1, 1}) ||
		c.Sizes[n-1] != (SizeClass{16 * mib, 32 * mib, 20 * mib, 1, 1}) ||
		c.Sizes[12] != (SizeClass{2 * mib, 4 * mib, 2 * mib, 1, 1}) {
		t.Errorf("%+v", c.Sizes)
	}
	rows := sizeRows(c.Sizes)
	if !slices.Equal(rows[1], []string{"512", "1024", "512", "1", "1"}) {
		t.Errorf("rows %q", rows)
	}
	if svg := string(picture(t, c, "svg")); !strings.Contains(svg, ">live at the peak: 22.0 MiB<") ||
		!strings.Contains(svg, ">33.3 %<") || !strings.Contains(svg, ">&lt;0.1 %<") {
		t.Error("labels are missing")
	}
	short := placedBlocks()
	short.History.LeftOut = 1
	if _, err := Make("sizes", []Run{{Name: "a", Summary: short}}, Options{}); err == nil ||
		!strings.Contains(err.Error(), "not every block is known") {
		t.Errorf("blocks are missing: %v", err)
	}
}
