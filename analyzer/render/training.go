package render

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/analyzer/rules"
	"memtrace/internal/visible"
)

// trains reports whether a run shows signs of training, or of a model at all: other programs' reports keep silent about
// it.
func trains(t *report.Training) bool {
	return t != nil && (t.IterationsBy != report.IterationsByNothing && len(t.Iterations) > 0 || len(t.Parameters) > 0 || t.Modules != nil)
}

// training is the report's own part about it: what the memory was for at the peak, and how iterations went.
func writeTraining(p *page, s *report.Summary) {
	if !trains(s.Training) || s.Asked {
		return
	}
	t := s.Training
	if t.Highest >= 0 && sorted(t) {
		writeCategoriesAtPeak(p, s, t)
	}
	p.title("Iterations")
	p.gap()
	writeIterationLines(p, t)
	p.gap()
}

// sorted reports whether the rules could tell anything about the peak: in programs that no framework runs they often
// cannot.
func sorted(t *report.Training) bool {
	for i, bytes := range t.Iterations[t.Highest].Peak.Held {
		if bytes > 0 && t.Categories[i] != rules.Others {
			return true
		}
	}
	return false
}

// categoriesAtPeak prints the categories at the highest moment of the level, which is that of its highest iteration.
func writeCategoriesAtPeak(p *page, s *report.Summary, t *report.Training) {
	highest := &t.Iterations[t.Highest]
	end := t.Iterations[len(t.Iterations)-1].End
	p.title(fmt.Sprintf("What the memory of %s was for at its peak, %s (rules %s)", levelName(s, t), moment(highest.Peak.TimeNS), visible.Text(t.Rules)))
	p.gap()
	order := heaviest(highest.Peak.Held)
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
	shares := tenths(values)
	var rows [][]cell
	for row, i := range order {
		name := visible.Text(t.Categories[i])
		if t.Categories[i] == rules.Others {
			name += " (no rule matches)"
		}
		rows = append(rows, []cell{{name, plain}, {Bytes(values[row]), strong}, {percent(shares[row]), plain}, {bar(values[row], largest, barWidth, p.ASCII), blocks}, {Bytes(end[i]), plain}})
	}
	p.table([]column{{title: "category"}, {title: "bytes", right: true}, {title: "share", right: true}, {optional: 2}, {title: "at end", right: true, optional: 1}}, rows)
	p.gap()
}
