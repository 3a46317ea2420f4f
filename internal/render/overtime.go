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

// overTime draws the main level over the run in one line, up to its last change.
func (p *screen) overTime(s *report.Summary) {
	if len(s.Heights) == 0 || len(s.Heights[0].PeakBytes) < 2 || s.Main().PeakBytes == 0 {
		return
	}
	h := &s.Heights[0]
	highs := inMotion(h)
	until := min(h.FromNS+int64(len(highs))*h.WidthNS, s.EndNS())
	words := fmt.Sprintf("%s to %s", layout.Moment(h.FromNS), layout.Moment(until))
	if len(highs) < len(h.PeakBytes) {
		words += ", then flat for " + layout.Duration(s.EndNS()-until)
	}
	words += ", peak at " + layout.Moment(s.Main().PeakTimeNS)
	columns := min(sparkColumns, len(highs), p.Columns()-13-2-len(words))
	if columns < sparkColumnsMin {
		return
	}
	p.Line("  %s%s  %s", layout.Pad("over time", 11), p.Paint(layout.Blocks, layout.Sparkline(highs, columns, p.ASCII)),
		words)
}

// inMotion leaves out the intervals after that of the last change, except for as many as a line needs.
func inMotion(h *report.Heights) []uint64 {
	last := max(h.ChangedNS-h.FromNS, 0) / h.WidthNS
	return h.PeakBytes[:min(int64(len(h.PeakBytes)), max(last+1, sparkColumnsMin))]
}
