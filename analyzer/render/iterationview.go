package render

import (
	"fmt"
	"slices"
	"strconv"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

const iterationEnds = 3 // iterations shown at both ends of the run

// categoryColumns is how many categories get a column of their own. Columns that a table leaves out for want of room
// would be missing from the column of the others.
func categoryColumns(p *page) int {
	const (
		sizeColumn = 11
		basic      = 59 // iteration, peak, phase, others, reserved
		more       = 20 // epoch, bytes at the end
		roomy      = 120
		most       = 6
	)
	room := p.columns() - basic
	if p.columns() >= roomy {
		room -= more
	}
	return min(max(room/sizeColumn, 1), most)
}

// iterations prints one row per iteration: all of them, or those at both ends, the highest one, and some between.
func writeIterations(p *page, s *report.Summary) {
	t := s.Training
	p.title(fmt.Sprintf("Iterations of %s's blocks", levelName(s, t)))
	p.gap()
	writeIterationLines(p, t)
	p.gap()
	own, used := iterationCategories(t, categoryColumns(p))
	short := shortNames(t.Categories)
	columns := []column{{title: "iteration"}, {title: "epoch", right: true, optional: 3}, {title: "peak", right: true}, {title: "in"}}
	for _, i := range own {
		columns = append(columns, column{title: short[i], right: true})
	}
	columns = append(columns, column{title: "rest", right: true}, column{title: "reserved", right: true, optional: 1}, column{title: "at its end", right: true, optional: 2})
	picked := pickIterations(t, p.rowLimit())
	var rows [][]cell
	for _, i := range picked {
		rows = append(rows, iterationCells(t, i, own))
	}
	p.table(withoutBlank(columns, rows))
	if hidden := len(t.Iterations) - len(picked); hidden > 0 {
		p.line("  %s not shown, with -n 0", plural(uint64(hidden), "iteration", "iterations"))
	}
	p.gap()
	p.item(fmt.Sprintf("Categories are those of the rules %s at each peak: %s.", visible.Text(t.Rules), legend(t.Categories, used)))
}

// withoutBlank leaves out columns in which no row says anything.
func withoutBlank(columns []column, rows [][]cell) ([]column, [][]cell) {
	var kept []column
	slim := make([][]cell, len(rows))
	for i, c := range columns {
		if !slices.ContainsFunc(rows, func(row []cell) bool { return row[i].text != "" }) {
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
	own = heaviest(most)
	own = own[:min(len(own), columns)]
	slices.Sort(own)
	used = make([]bool, len(t.Categories))
	for _, i := range own {
		used[i] = true
	}
	return own, used
}

func iterationCells(t *report.Training, index int, own []int) []cell {
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
	row := []cell{{name, plain}, {}, {Bytes(it.Peak.Bytes), strong}, {visible.Text(it.Peak.Phase), plain}}
	if it.Epoch > 0 {
		row[1].text = strconv.FormatUint(it.Epoch, 10)
	}
	rest := it.Peak.Bytes
	for _, i := range own {
		row = append(row, cell{Bytes(it.Peak.Held[i]), plain})
		rest -= it.Peak.Held[i]
	}
	reserved := cell{}
	if it.ReservedPeakBytes > 0 {
		reserved.text = Bytes(it.ReservedPeakBytes)
	}
	return append(row, cell{Bytes(rest), plain}, reserved, cell{Bytes(sumOf(it.End)), plain})
}

// pickIterations chooses what a table of so many rows shows: the first and the last ones and the highest, then powers
// of ten and of two, and evenly what is left of the room.
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
