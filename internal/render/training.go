package render

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
	"memtrace/internal/sanitize"
)

// trains reports whether a run shows signs of training, or of a model at all: other programs' reports keep silent about
// it.
func trains(t *report.Training) bool {
	return t != nil && (t.IterationsBy != report.IterationsByNothing && len(t.Iterations) > 0 ||
		len(t.Parameters) > 0 || t.Modules != nil)
}

// writeTraining prints the report's part on training: the memory at the peak by category, and the iterations.
func writeTraining(p *layout.Page, s *report.Summary) {
	if !trains(s.Training) || s.Asked {
		return
	}
	t := s.Training
	if t.Highest >= 0 && sorted(t) {
		writeCategoriesAtPeak(p, s, t)
	}
	p.Title("Iterations")
	p.Gap()
	layout.WriteIterations(p, s)
	p.Gap()
}

// sorted reports whether the rules matched any of the peak: in programs without a framework they often do not.
func sorted(t *report.Training) bool {
	for i, bytes := range t.Iterations[t.Highest].Peak.Held {
		if bytes > 0 && t.Categories[i] != rules.Others {
			return true
		}
	}
	return false
}

// writeCategoriesAtPeak prints the categories at the highest moment of the level, which is that of its highest
// iteration.
func writeCategoriesAtPeak(p *layout.Page, s *report.Summary, t *report.Training) {
	highest := &t.Iterations[t.Highest]
	end := t.Iterations[len(t.Iterations)-1].End
	p.Title(fmt.Sprintf("What the memory of %s was for at its peak, %s (rules %s)", layout.TrainingLevel(s, t),
		layout.Moment(highest.Peak.TimeNS), sanitize.Text(t.Rules)))
	p.Gap()
	order := layout.Heaviest(highest.Peak.Held)
	order = slices.DeleteFunc(order, func(i int) bool { return t.Categories[i] == rules.Others })
	if others := slices.Index(t.Categories, rules.Others); others >= 0 && highest.Peak.Held[others] > 0 {
		order = append(order, others)
	}
	values := make([]uint64, len(order))
	var largest uint64
	for row, i := range order {
		values[row] = highest.Peak.Held[i]
		largest = max(largest, values[row])
	}
	shares := layout.Tenths(values)
	var rows [][]layout.Cell
	for row, i := range order {
		name := sanitize.Text(layout.CategoryWord(t.Categories[i]))
		rows = append(rows, []layout.Cell{{Text: name}, {Text: layout.Bytes(values[row]), Style: layout.Strong},
			{Text: layout.Percent(shares[row])}, {Text: layout.Bar(values[row], largest, layout.BarWidth, p.ASCII),
				Style: layout.Blocks}, {Text: layout.Bytes(end[i])}})
	}
	p.Table([]layout.Column{{Title: "category"}, {Title: "bytes", Right: true}, {Title: "share", Right: true},
		{Optional: 2}, {Title: "at end", Right: true, Optional: 1}}, rows)
	p.Gap()
}
