package render

import (
	"fmt"
	"io"
	"strings"
)

// page collects a report; the first error of the writer stops it.
type page struct {
	Options // how it is written

	w      io.Writer
	err    error
	blank  bool             // the last line was empty
	signed [len(signs)]bool // signs of inexact figures that were used and not explained yet

	sheets *[]Sheet // takes what is written in pieces; nil: nothing does
}

// newPage returns an empty page that is written to w.
func newPage(w io.Writer, o Options) *page { return &page{Options: o, w: w} }

// failure is the first error of the writer.
func (p *page) failure() error { return p.err }

// line prints a line, without blanks at its end.
func (p *page) line(format string, args ...any) {
	if p.err != nil {
		return
	}
	text := strings.TrimRight(fmt.Sprintf(format, args...), " ")
	p.blank = text == ""
	_, p.err = io.WriteString(p.w, text+"\n")
}

// gap leaves one empty line, never two.
func (p *page) gap() {
	if !p.blank {
		p.line("")
	}
}

func (p *page) title(text string) {
	p.startSheet(text)
	if widthOf(text) <= p.columns() {
		p.line("%s", p.paint(strong, text))
		return
	}
	for _, part := range Wrap(text, p.columns()) {
		p.line("%s", p.paint(strong, part))
	}
}

// field prints a name and what it is, wrapped under itself.
func (p *page) field(name, text string) { p.styled(plain, name, text) }

func (p *page) styled(s style, name, text string) {
	const nameWidth = 11
	p.keep(func(s *Sheet) { s.Fields = append(s.Fields, Fact{Name: name, Value: text}) })
	for i, part := range Wrap(text, p.columns()-nameWidth-2) {
		if i > 0 {
			name = ""
		}
		p.line("  %s%s", pad(name, nameWidth), p.paint(s, part))
	}
}

// item prints a line of a list, wrapped under itself.
func (p *page) item(text string) {
	p.keep(func(s *Sheet) { s.Items = append(s.Items, text) })
	sign := "- "
	for _, part := range Wrap(text, p.columns()-4) {
		p.line("  %s%s", sign, part)
		sign = "  "
	}
}

// pad fills text with blanks on the right.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-widthOf(s)))
}

// Wrap breaks text at blanks into lines of at most width cells; a longer word stands alone, cut where it must be.
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
		case widthOf(line)+1+widthOf(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

var unitWords = map[string]bool{"B": true, "KiB": true, "MiB": true, "GiB": true, "TiB": true, "PiB": true, "ns": true, "us": true, "ms": true, "s": true,
	"min": true, "h": true}

// words splits text at blanks, but leaves a number and its unit together.
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

// column is one column of a table.
type column struct {
	title    string
	right    bool // numbers
	optional int  // left out where the names would get too little room, the highest number first; 0: always there
}

// cell is a piece of a row; an empty one leaves its place blank.
type cell struct {
	text  string
	style style
}

const (
	tableGap = 2  // blanks before every column
	nameRoom = 40 // columns that names get before optional columns do
)

// table prints rows under titles. The first column takes the room that the others leave and clips what does not fit;
// every other column is as wide as its widest cell. shown says which columns there was room for.
func (p *page) table(columns []column, rows [][]cell) (shown []bool) {
	p.keep(func(s *Sheet) { s.take(columns, rows) })
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = widthOf(c.title)
		for _, row := range rows {
			widths[i] = max(widths[i], widthOf(row[i].text))
		}
	}
	shown = p.fit(columns, widths)
	titles := make([]cell, len(columns))
	for i, c := range columns {
		titles[i] = cell{c.title, faint}
	}
	rows = append([][]cell{titles}, rows...)
	names := make([]string, len(rows))
	for i, row := range rows {
		names[i] = row[0].text
	}
	names = ClipApart(names, widths[0], p.ASCII)
	for i, row := range rows {
		p.row(columns, widths, shown, append([]cell{{names[i], row[0].style}}, row[1:]...))
	}
	return shown
}

// fit decides which columns are shown, and gives the first one the room that the others leave.
func (p *page) fit(columns []column, widths []int) (shown []bool) {
	shown = make([]bool, len(columns))
	room := p.columns() - tableGap
	for i := range columns {
		shown[i] = true
		if i > 0 {
			room -= widths[i] + tableGap
		}
	}
	wanted := min(widths[0], nameRoom)
	for optional := len(columns); optional > 0 && room < wanted; optional-- {
		for i, c := range columns {
			if c.optional == optional {
				shown[i] = false
				room += widths[i] + tableGap
			}
		}
	}
	widths[0] = min(widths[0], max(room, 8))
	return shown
}

func (p *page) row(columns []column, widths []int, shown []bool, row []cell) {
	var b strings.Builder
	for i, c := range row {
		if !shown[i] {
			continue
		}
		b.WriteString("  ")
		text := clip(c.text, widths[i], p.ASCII)
		blanks := strings.Repeat(" ", widths[i]-widthOf(text))
		painted := p.paint(c.style, text)
		if columns[i].right {
			b.WriteString(blanks + painted)
		} else {
			b.WriteString(painted + blanks)
		}
	}
	p.line("%s", b.String())
}

// oneLine is field for text that is only to be recognised.
func (p *page) oneLine(name, text string) {
	p.field(name, clip(text, p.columns()-13, p.ASCII))
}
