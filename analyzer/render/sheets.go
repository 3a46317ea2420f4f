package render

import (
	"io"

	"memtrace/analyzer/report"
)

// Sheet is a part of the text report in pieces, for forms that lay it out themselves.
type Sheet struct {
	Title  string
	Fields []Fact // names and what they are; one without a name goes on with the one before
	Head   []Head // of the table; none without one
	Rows   [][]string
	Items  []string // remarks
}

// Head is a column's title.
type Head struct {
	Text  string
	Right bool // numbers
}

// take adds a table, without the column of bars.
func (s *Sheet) take(columns []column, rows [][]cell) {
	for _, row := range rows {
		s.Rows = append(s.Rows, nil)
		for i, c := range columns {
			if i == 0 || c.title != "" {
				s.Rows[len(s.Rows)-1] = append(s.Rows[len(s.Rows)-1], row[i].text)
			}
		}
	}
	for i, c := range columns {
		if i == 0 || c.title != "" {
			s.Head = append(s.Head, Head{c.title, c.right})
		}
	}
}

// startSheet begins one; what follows belongs to it.
func (p *page) startSheet(title string) {
	if p.sheets != nil {
		*p.sheets = append(*p.sheets, Sheet{Title: title})
	}
}

func (p *page) keep(piece func(*Sheet)) {
	if p.sheets == nil {
		return
	}
	if len(*p.sheets) == 0 {
		p.startSheet("")
	}
	piece(&(*p.sheets)[len(*p.sheets)-1])
}

// sheetsOf collects what print writes.
func sheetsOf(rows int, print func(*page)) []Sheet {
	var sheets []Sheet
	print(&page{w: io.Discard, o: Options{Rows: rows, Width: 10_000}, sheets: &sheets})
	return sheets
}

// OOMSheets tell the first time that memory ran out, or was short, and list the others; nil if it was not.
func OOMSheets(s *report.Summary, rows int) []Sheet {
	return sheetsOf(rows, func(p *page) { p.oom(s) })
}

// DeviceSheets say what fills each device; where that is not known, why.
func DeviceSheets(s *report.Summary, rows int) []Sheet {
	all := *s
	all.Asked = true // every moment that the ledger has, and every owner
	return sheetsOf(rows, func(p *page) { p.deviceLedgers(&all) })
}

// ParameterSheets list what belongs to each parameter and buffer, and to the optimizers; nil if a framework named none.
func ParameterSheets(s *report.Summary, rows int) []Sheet {
	if !s.Trains() {
		return nil
	}
	return sheetsOf(rows, func(p *page) { p.parameters(s) })
}
