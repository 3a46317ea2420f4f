package render

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
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

// laneCells is the number of letters for the phases of an interval.
const laneCells = 8

// phaseCells shows the phases of an interval as letters: each letter is the first one of a phase, and represents an
// eighth of the interval. A phase that occurs has at least one.
func phaseCells(parts []report.PhasePart, width int64) string {
	cells, sum := make([]int, len(parts)), 0
	for i, p := range parts {
		cells[i] = max(int(min(float64(p.NS)/float64(max(width, 1)), 1)*laneCells+0.5), 1)
		sum += cells[i]
	}
	for ; sum > max(laneCells, len(parts)); sum-- {
		most := slices.Index(cells, slices.Max(cells))
		cells[most]--
	}
	var text strings.Builder
	for i, p := range parts {
		text.WriteString(strings.Repeat(sanitize.Text(p.Phase)[:1], cells[i]))
	}
	return text.String()
}

// phaseWordsOf explains the letters that rows have.
func phaseWordsOf(t *report.Timeline, first, last int) string {
	all := phasesOf(t.Lanes[first : last+1])
	if len(all) == 0 {
		return ""
	}
	var names []string
	for _, p := range all {
		names = append(names, fmt.Sprintf("%.1s %s", p.Phase, p.Phase))
	}
	return fmt.Sprintf("Phases: a letter is about an eighth of the row's time, %s.", strings.Join(names, ", "))
}

// phasesOf are the phases of some intervals together.
func phasesOf(lanes []report.TimelineLane) (all []report.PhasePart) {
	for i := range lanes {
		all = report.JoinPhases(all, lanes[i].Phases)
	}
	return all
}

// phaseColumns are the titles of a table's columns of phases.
func phaseColumns(all []report.PhasePart) (titles []string) {
	for _, p := range all {
		titles = append(titles, p.Phase+"_seconds")
	}
	return titles
}

// phaseSeconds is the time of an interval in each of the phases.
func phaseSeconds(all, parts []report.PhasePart) []string {
	row := make([]string, len(all))
	for i, p := range all {
		row[i] = layout.Seconds(0)
		if n := slices.IndexFunc(parts, func(part report.PhasePart) bool { return part.Phase == p.Phase }); n >= 0 {
			row[i] = layout.Seconds(parts[n].NS)
		}
	}
	return row
}
