package render

import (
	"fmt"
	"slices"
	"strconv"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

const iterationEnds = 3 // iterations shown at both ends of the run

// categoryColumns is how many categories get a column of their own. Columns dropped for lack of room would be missing
// from the column of the others.
func categoryColumns(p *layout.Page) int {
	const (
		sizeColumn = 11
		basic      = 59 // iteration, peak, phase, others, reserved
		more       = 20 // epoch, bytes at the end
		roomy      = 120
		most       = 6
	)
	room := p.Columns() - basic
	if p.Columns() >= roomy {
		room -= more
	}
	return min(max(room/sizeColumn, 1), most)
}

// writeIterations prints one row per iteration: all of them, or those at both ends, the highest one, and some between.
func writeIterations(p *layout.Page, s *report.Summary) {
	t := s.Training
	p.Title(fmt.Sprintf("Iterations of %s's blocks", layout.TrainingLevel(s, t)))
	p.Gap()
	layout.WriteIterations(p, s)
	p.Gap()
	own, used := iterationCategories(t, categoryColumns(p))
	short := shortNames(t.Categories)
	columns := []layout.Column{{Title: "iteration"}, {Title: "epoch", Right: true, Optional: 3},
		{Title: "peak", Right: true}, {Title: "in"}}
	for _, i := range own {
		columns = append(columns, layout.Column{Title: short[i], Right: true})
	}
	columns = append(columns, layout.Column{Title: "rest", Right: true}, layout.Column{Title: "reserved", Right: true,
		Optional: 1}, layout.Column{Title: "at its end", Right: true, Optional: 2})
	picked := pickIterations(t, p.RowLimit())
	var rows [][]layout.Cell
	for _, i := range picked {
		rows = append(rows, iterationCells(t, i, own))
	}
	p.Table(withoutBlank(columns, rows))
	if hidden := len(t.Iterations) - len(picked); hidden > 0 {
		p.Line("  %s not shown, with -n 0", layout.Plural(uint64(hidden), "iteration", "iterations"))
	}
	p.Gap()
	p.Item(fmt.Sprintf("Categories are those of the rules %s at each peak: %s.", sanitize.Text(t.Rules),
		legend(t.Categories, used)))
}

// withoutBlank removes columns that are blank in every row.
func withoutBlank(columns []layout.Column, rows [][]layout.Cell) ([]layout.Column, [][]layout.Cell) {
	var kept []layout.Column
	slim := make([][]layout.Cell, len(rows))
	for i, c := range columns {
		if !slices.ContainsFunc(rows, func(row []layout.Cell) bool { return row[i].Text != "" }) {
			continue
		}
		kept = append(kept, c)
		for r := range rows {
			slim[r] = append(slim[r], rows[r][i])
		}
	}
	return kept, slim
}

// iterationCategories picks the categories that hold most, in the order of the rules.
func iterationCategories(t *report.Training, columns int) (own []int, used []bool) {
	most := make([]uint64, len(t.Categories))
	for i := range t.Iterations {
		for k, bytes := range t.Iterations[i].Peak.Held {
			most[k] = max(most[k], bytes)
		}
	}
	own = layout.Heaviest(most)
	own = own[:min(len(own), columns)]
	slices.Sort(own)
	used = make([]bool, len(t.Categories))
	for _, i := range own {
		used[i] = true
	}
	return own, used
}

func iterationCells(t *report.Training, index int, own []int) []layout.Cell {
	it := &t.Iterations[index]
	name := strconv.FormatUint(it.Number, 10)
	if !it.Ended && t.IterationsBy != report.IterationsByNothing {
		name = "then"
	}
	if t.IsBefore(index) {
		name = "before"
	}
	if index == t.Highest && len(t.Iterations) > 1 {
		name += " (highest)"
	}
	row := []layout.Cell{{Text: name}, {}, {Text: layout.Bytes(it.Peak.Bytes), Style: layout.Strong},
		{Text: sanitize.Text(it.Peak.Phase)}}
	if it.Epoch > 0 {
		row[1].Text = strconv.FormatUint(it.Epoch, 10)
	}
	rest := it.Peak.Bytes
	for _, i := range own {
		row = append(row, layout.Cell{Text: layout.Bytes(it.Peak.Held[i])})
		rest -= it.Peak.Held[i]
	}
	reserved := layout.Cell{}
	if it.ReservedPeakBytes > 0 {
		reserved.Text = layout.Bytes(it.ReservedPeakBytes)
	}
	return append(row, layout.Cell{Text: layout.Bytes(rest)}, reserved,
		layout.Cell{Text: layout.Bytes(layout.Sum(it.End))})
}

// pickIterations chooses the limit rows of a table: the first and the last ones and the highest, then powers of ten and
// of two, then evenly spaced ones.
func pickIterations(t *report.Training, limit int) []int {
	n := len(t.Iterations)
	chosen := make(map[int]bool)
	add := func(index int) {
		if index >= 0 && index < n && len(chosen) < max(limit, 1) {
			chosen[index] = true
		}
	}
	add(t.Highest)
	for i := range iterationEnds {
		add(i)
		add(n - 1 - i)
	}
	for _, base := range []int{10, 2} {
		for power := base; power <= n; power *= base {
			add(power - 1)
		}
	}
	if limit >= n {
		limit = n
	}
	for part, parts := 1, limit-len(chosen)+1; part < parts; part++ {
		add(n * part / parts)
	}
	for i := 0; i < n && len(chosen) < limit; i++ { // what fell on a row that was chosen before
		add(i)
	}
	list := make([]int, 0, len(chosen))
	for i := range chosen {
		list = append(list, i)
	}
	slices.Sort(list)
	return list
}
