package render

import (
	"fmt"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// How wide the line of memory over time is, and the least that shows anything.
const (
	sparkColumns    = 48
	sparkColumnsMin = 8
)

// overTime draws the main level over the run in one line.
func (p *screen) overTime(s *report.Summary) {
	if len(s.Heights) == 0 || len(s.Heights[0].PeakBytes) < 2 || s.Main().PeakBytes == 0 {
		return
	}
	h := &s.Heights[0]
	highs := inMotion(h.PeakBytes)
	words := fmt.Sprintf("%s to %s", layout.Moment(h.FromNS),
		layout.Moment(min(h.FromNS+int64(len(highs))*h.WidthNS, s.EndNS())))
	if s.Window == nil { // the line above has the window's length
		words += " of " + layout.Duration(s.EndNS()-s.BeginNS())
	}
	words += ", peak at " + layout.Moment(s.Main().PeakTimeNS)
	columns := min(sparkColumns, len(highs), p.Columns()-13-2-len(words))
	if columns < sparkColumnsMin {
		return
	}
	p.Line("  %s%s  %s", layout.Pad("over time", 11), p.Paint(layout.Blocks, layout.Sparkline(highs, columns, p.ASCII)),
		words)
}

// inMotion leaves out the part after the last change, except for its interval and as many as a line needs.
func inMotion(highs []uint64) []uint64 {
	n := len(highs)
	for n > sparkColumnsMin && highs[n-2] == highs[n-1] {
		n--
	}
	return highs[:n]
}
