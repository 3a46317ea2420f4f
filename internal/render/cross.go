package render

import (
	"fmt"
	"iter"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/fold"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// crossColumns is how many columns a crossed table has at most before the others are summed up, unless all rows were
// requested.
const crossColumns = 6

// noCross explains why there is no crossed table.
func noCross(s *report.Summary) string {
	switch {
	case s.Cross == nil:
		return "no crossed table was requested"
	case len(s.Cross.Rows) == 0:
		return "nothing was held at " + s.Cross.Moment
	case s.Cross.By == [2]string{"module", "category"} && len(s.Cross.Rows) == 1 &&
		s.Cross.Rows[0].Key == report.NoModule:
		return "no module is known, as in programs that do not train; name two groupings, such as --cross site,library"
	}
	return ""
}

// writeCross prints the table: rows of one grouping, columns of the other, those that do not fit summed up.
func writeCross(p *layout.Page, s *report.Summary) {
	c := s.Cross
	when := "the peak of " + layout.FrameworkName(s.Versions)
	if c.Level != "framework" {
		when = "the peak"
	}
	if c.Moment != "peak" {
		when = sanitize.Text(c.Moment)
	}
	p.Title(fmt.Sprintf("Where the memory was at %s, %s: %s by %s", when, layout.Moment(c.TimeNS), c.By[0], c.By[1]))
	p.Gap()
	rows := foldedCross(p, c)
	// more columns are more informative than the bytes of each of repeated modules
	for shown := crossWidth(p, len(c.Columns)); ; shown-- {
		columns, table, each := crossTable(p, c, rows, shown)
		plain := crossFits(p, columns, table)
		if with, wider := layout.EachColumn(slices.Clone(columns), cloneRows(table), each); crossFits(p, with, wider) ||
			shown <= 1 && !plain {
			columns, table, plain = with, wider, true
		}
		if plain || p.Rows < 0 {
			p.Table(columns, table)
			return
		}
	}
}

func cloneRows(rows [][]layout.Cell) [][]layout.Cell {
	list := make([][]layout.Cell, len(rows))
	for i := range rows {
		list[i] = slices.Clone(rows[i])
	}
	return list
}

func crossWidth(p *layout.Page, columns int) int {
	if p.Rows < 0 {
		return columns
	}
	return min(columns, crossColumns)
}

// crossFits reports whether the names have room next to all columns.
func crossFits(p *layout.Page, columns []layout.Column, rows [][]layout.Cell) bool {
	room := p.Columns()
	for i := range columns {
		width := layout.Width(columns[i].Title)
		for _, row := range rows {
			width = max(width, layout.Width(row[i].Text))
		}
		if i == 0 {
			width = min(width, layout.NameRoom)
		}
		room -= width + layout.TableGap
	}
	return room >= 0
}

// crossSum is a row, or several.
type crossSum struct {
	name, each string
	bytes      uint64
	cells      []uint64
}

func foldedCross(p *layout.Page, c *report.Cross) []crossSum {
	keys, bytes := make([]string, len(c.Rows)), make([]uint64, len(c.Rows))
	for i := range c.Rows {
		keys[i], bytes[i] = c.Rows[i].Key, c.Rows[i].Bytes
	}
	by := c.By[0]
	if p.Unfolded {
		by = ""
	}
	var list []crossSum
	for _, f := range fold.FoldRows(by, keys, bytes) {
		sum := crossSum{name: sanitize.Text(f.Name), each: p.Each(len(f.Members), f.Min, f.Max), bytes: f.Bytes,
			cells: make([]uint64, len(c.Columns))}
		if !f.Repeated() {
			sum.name = sanitize.Text(c.Rows[f.Members[0]].Title())
		}
		for _, m := range f.Members {
			for i, n := range c.Rows[m].Cells {
				sum.cells[i] += n
			}
		}
		list = append(list, sum)
	}
	return layout.Fewer(list, p.RowLimit(), func(hidden []crossSum) crossSum {
		rest := crossSum{name: layout.MoreRows(c.By[0], len(hidden)), cells: make([]uint64, len(c.Columns))}
		for _, h := range hidden {
			rest.bytes += h.bytes
			rest.cells = addLists(rest.cells, h.cells)
		}
		return rest
	})
}

// crossTable makes the cells, with the first columns and the sum of the others.
func crossTable(p *layout.Page, c *report.Cross, sums []crossSum,
	shown int) (columns []layout.Column, rows [][]layout.Cell, each []string) {
	rest := len(c.Columns) - shown
	columns = []layout.Column{{Title: c.By[0]}}
	for i := range c.Columns[:shown] {
		columns = append(columns, layout.Column{Title: layout.Clip(sanitize.Text(c.Columns[i].Title()), crossTitle,
			p.ASCII), Right: true})
	}
	if rest > 0 {
		columns = append(columns, layout.Column{Title: layout.Plural(uint64(rest), "other", "others"), Right: true})
	}
	columns = append(columns, layout.Column{Title: "total", Right: true})
	total := crossSum{name: "total", bytes: c.WholeBytes}
	for i := range c.Columns {
		total.cells = append(total.cells, c.Columns[i].Bytes)
	}
	for _, sum := range append(slices.Clone(sums), total) {
		look := layout.Plain
		if sum.name == "total" && len(rows) == len(sums) {
			look = layout.Strong
		}
		row := []layout.Cell{{Text: sum.name, Style: look}}
		for _, bytes := range sum.cells[:shown] {
			row = append(row, layout.Cell{Text: layout.BytesOrDash(bytes), Style: look})
		}
		if rest > 0 {
			row = append(row, layout.Cell{Text: layout.BytesOrDash(layout.Sum(sum.cells[shown:])), Style: look})
		}
		rows, each = append(rows, append(row, layout.Cell{Text: layout.Bytes(sum.bytes), Style: layout.Strong})),
			append(each, sum.each)
	}
	return columns, rows, each
}

// crossTitle is how wide the title of a column may be.
const crossTitle = 24

// crossRows is the CSV of a crossed table.
func crossRows(s *report.Summary, _ layout.Options, write layout.UnitWriter) iter.Seq[[]string] {
	c := s.Cross
	return func(yield func([]string) bool) {
		header := []string{c.By[0], "total"}
		for i := range c.Columns {
			header = append(header, c.Columns[i].Key)
		}
		if !yield(header) {
			return
		}
		for i := range c.Rows {
			row := []string{c.Rows[i].Key, write(c.Rows[i].Bytes)}
			for _, bytes := range c.Rows[i].Cells {
				row = append(row, write(bytes))
			}
			if !yield(row) {
				return
			}
		}
	}
}
