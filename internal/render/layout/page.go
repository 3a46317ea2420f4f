// Package layout has the parts of every text and picture: pages of titles, fields, lists and tables within a width,
// sheets of the same as data, the formats of sizes, counts, times and shares, words that several reports share, lanes
// over time, and colours. It may import the report's types and the names of rules, and the sanitizer of text; it does
// not depend on the content of a page.
package layout

import (
	"fmt"
	"io"
	"strings"
)

// Page collects a report; the first error of the writer stops it.
type Page struct {
	Options // how it is written

	w      io.Writer
	err    error
	blank  bool             // the last line was empty
	signed [len(signs)]bool // signs of inexact figures that were used and not explained yet

	sheets *[]Sheet // receives the content as data; nil: nothing does
}

// NewPage returns an empty page that is written to w.
func NewPage(w io.Writer, o Options) *Page { return &Page{Options: o, w: w} }

// Err is the first error of the writer.
func (p *Page) Err() error { return p.err }

// Line prints a line, without blanks at its end.
func (p *Page) Line(format string, args ...any) {
	if p.err != nil {
		return
	}
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	p.blank = text == ""
	_, p.err = io.WriteString(p.w, text+"\n")
}

// Gap prints one empty line, never two.
func (p *Page) Gap() {
	if !p.blank {
		p.Line("")
	}
}

// Title prints a title, and begins a sheet.
func (p *Page) Title(text string) {
	p.startSheet(text)
	if Width(text) <= p.Columns() {
		p.Line("%s", p.Paint(Strong, text))
		return
	}
	for _, part := range Wrap(text, p.Columns()) {
		p.Line("%s", p.Paint(Strong, part))
	}
}

// Field prints a name and what it is, wrapped under itself.
func (p *Page) Field(name, text string) { p.Styled(Plain, name, text) }

// Styled prints a name and what it is, set off, wrapped under itself.
func (p *Page) Styled(s Style, name, text string) {
	const nameWidth = 11
	p.keep(func(s *Sheet) { s.Fields = append(s.Fields, Fact{Name: name, Value: text}) })
	for i, part := range Wrap(text, p.Columns()-nameWidth-2) {
		if i > 0 {
			name = ""
		}
		p.Line("  %s%s", Pad(name, nameWidth), p.Paint(s, part))
	}
}

// Item prints a line of a list, wrapped under itself.
func (p *Page) Item(text string) {
	p.keep(func(s *Sheet) { s.Items = append(s.Items, text) })
	sign := "- "
	for _, part := range Wrap(text, p.Columns()-4) {
		p.Line("  %s%s", sign, part)
		sign = "  "
	}
}

// Pad fills text with blanks on the right.
func Pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// Wrap breaks text at blanks into lines of at most width cells; a longer word is on its own line, cut if necessary.
func Wrap(text string, width int) []string {
	width = max(width, widestCharacter)
	var lines []string
	line := ""
	for _, word := range words(text) {
		for head, rest := cut(word, width); rest != ""; head, rest = cut(word, width) {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			lines, word = append(lines, head), rest
		}
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

var unitWords = map[string]bool{"B": true, "KiB": true, "MiB": true, "GiB": true, "TiB": true, "PiB": true, "ns": true,
	"us": true, "ms": true, "s": true,
	"min": true, "h": true}

// words splits text at blanks, but keeps a number and its unit together.
func words(text string) []string {
	var list []string
	joined := false // a word has one unit: a text may consist of nothing but units
	for _, word := range strings.Fields(text) {
		if len(list) > 0 && !joined && unitWords[strings.TrimRight(word, ".,;:)")] {
			list[len(list)-1] += " " + word
			joined = true
		} else {
			list = append(list, word)
			joined = false
		}
	}
	return list
}

// Column is one column of a table.
type Column struct {
	Title    string
	Right    bool // numbers
	Optional int  // left out where the names would get too little room, the highest number first; 0: always there
}

// Cell is a field of a row; an empty one leaves its column blank.
type Cell struct {
	Text  string
	Style Style
}

const (
	TableGap = 2  // blanks before every column
	NameRoom = 40 // columns that names get before optional columns do
)

// Table prints rows under titles. The first column takes the remaining width and is clipped; every other column is as
// wide as its widest cell. shown reports which columns had room.
func (p *Page) Table(columns []Column, rows [][]Cell) (shown []bool) {
	p.keep(func(s *Sheet) { s.take(columns, rows) })
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = Width(c.Title)
		for _, row := range rows {
			widths[i] = max(widths[i], Width(row[i].Text))
		}
	}
	shown = p.fit(columns, widths)
	titles := make([]Cell, len(columns))
	for i, c := range columns {
		titles[i] = Cell{c.Title, Faint}
	}
	rows = append([][]Cell{titles}, rows...)
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[0].Text
	}
	names = ClipApart(names, widths[0], p.ASCII)
	for i, row := range rows {
		p.row(columns, widths, shown, append([]Cell{{names[i], row[0].Style}}, row[1:]...))
	}
	return shown
}

// fit decides which columns are shown, and gives the first one the remaining width.
func (p *Page) fit(columns []Column, widths []int) (shown []bool) {
	shown = make([]bool, len(columns))
	room := p.Columns() - TableGap
	for i := range columns {
		shown[i] = true
		if i > 0 {
			room -= widths[i] + TableGap
		}
	}
	wanted := min(widths[0], NameRoom)
	for optional := len(columns); optional > 0 && room < wanted; optional-- {
		for i, c := range columns {
			if c.Optional == optional {
				shown[i] = false
				room += widths[i] + TableGap
			}
		}
	}
	widths[0] = min(widths[0], max(room, 8))
	return shown
}

func (p *Page) row(columns []Column, widths []int, shown []bool, row []Cell) {
	var b strings.Builder
	for i, c := range row {
		if !shown[i] {
			continue
		}
		b.WriteString("  ")
		text := Clip(c.Text, widths[i], p.ASCII)
		blanks := strings.Repeat(" ", widths[i]-Width(text))
		painted := p.Paint(c.Style, text)
		if columns[i].Right {
			b.WriteString(blanks + painted)
		} else {
			b.WriteString(painted + blanks)
		}
	}
	p.Line("%s", b.String())
}

// Clipped is Field for text that is only to be recognised.
func (p *Page) Clipped(name, text string) {
	p.Field(name, Clip(text, p.Columns()-13, p.ASCII))
}
