package layout

import (
	"io"
)

// Sheet is a part of the text report in pieces, for forms that lay it out themselves.
type Sheet struct {
	Title  string
	Fields []Fact // names and values; one without a name continues the previous one
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
func (s *Sheet) take(columns []Column, rows [][]Cell) {
	for _, row := range rows {
		s.Rows = append(s.Rows, nil)
		for i, c := range columns {
			if i == 0 || c.Title != "" {
				s.Rows[len(s.Rows)-1] = append(s.Rows[len(s.Rows)-1], row[i].Text)
			}
		}
	}
	for i, c := range columns {
		if i == 0 || c.Title != "" {
			s.Head = append(s.Head, Head{c.Title, c.Right})
		}
	}
}

// startSheet begins one; what follows belongs to it.
func (p *Page) startSheet(title string) {
	if p.sheets != nil {
		*p.sheets = append(*p.sheets, Sheet{Title: title})
	}
}

func (p *Page) keep(piece func(*Sheet)) {
	if p.sheets == nil {
		return
	}
	if len(*p.sheets) == 0 {
		p.startSheet("")
	}
	piece(&(*p.sheets)[len(*p.sheets)-1])
}

// SheetsOf collects what print writes.
func SheetsOf(rows int, print func(*Page)) []Sheet {
	var sheets []Sheet
	p := NewPage(io.Discard, Options{Rows: rows, Width: 10_000})
	p.sheets = &sheets
	print(p)
	return sheets
}

// Fact is a line of a report's heading.
type Fact struct {
	Name, Value string
	Alarm       bool // figures may be wrong because of it
	Long        bool // only to be recognised: it may be cut
}
