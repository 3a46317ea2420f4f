package layout

import (
	"strings"

	"memtrace/analyzer/report"
)

// Range formats a figure that lost records may have changed: from its lower bound to the recorded value, with a plus if
// it may have been more. A nil lower bound, as if nothing was lost, gives the plain figure.
func Range(lower *uint64, recorded uint64, b *report.Bounds) string {
	if lower == nil || b == nil {
		return Bytes(recorded)
	}
	plus := "+"
	if b.RecordedIsUpper {
		plus = ""
	}
	low, from, _ := strings.Cut(Bytes(*lower), " ")
	high, unit, _ := strings.Cut(Bytes(max(*lower, recorded)), " ")
	switch {
	case *lower >= recorded:
		return high + plus + " " + unit
	case low == high && from == unit && plus == "":
		return "up to " + high + " " + unit // they differ by less than is shown
	case low == high && from == unit:
		return high + plus + " " + unit
	case from == unit || *lower == 0:
		return low + " to " + high + plus + " " + unit
	}
	return low + " " + from + " to " + high + plus + " " + unit
}

// Marked formats a figure of a table that has no room for ranges, with a sign before it if it is not exact.
func (p *Page) Marked(lower *uint64, recorded uint64, b *report.Bounds) string {
	return p.mark(lower, recorded, b) + Bytes(recorded)
}

// The signs of figures that are not exact.
var (
	signs      = [...]string{"", "≤ ", "≥ ", "~ "}
	asciiSigns = [...]string{"", "<= ", ">= ", "~ "}
)

func (p *Page) mark(lower *uint64, recorded uint64, b *report.Bounds) string {
	if lower == nil || b == nil {
		return ""
	}
	i := 0
	if *lower < recorded {
		i |= 1
	}
	if !b.RecordedIsUpper {
		i |= 2
	}
	return p.sign(i)
}

// Loose marks a difference of inexact figures: it may be off in both directions, whatever was lost.
func (p *Page) Loose(lower *uint64, b *report.Bounds) string {
	if lower == nil || b == nil {
		return ""
	}
	return p.sign(len(signs) - 1)
}

func (p *Page) sign(i int) string {
	p.signed[i] = p.signed[i] || i > 0
	if p.ASCII {
		return asciiSigns[i]
	}
	return signs[i]
}

// Legend explains the signs that were used since the last one.
func (p *Page) Legend() {
	words := [...]string{"", "at most: what lost frees gave back may still be counted",
		"at least: this is certain, and lost allocations may come on top",
		"as recorded: lost frees may make it less, lost allocations more"}
	for i, used := range p.signed {
		if sign := signs[i]; used {
			if p.ASCII {
				sign = asciiSigns[i]
			}
			p.Item(sign + words[i])
		}
	}
	p.signed = [len(signs)]bool{}
}

// Figure writes one figure of a table.
type Figure func(lower *uint64, recorded uint64, b *report.Bounds) string

// RangedTable prints a table whose figures are ranges if records were lost, or if there is no room for them, figures
// with signs.
func (p *Page) RangedTable(columns []Column, rows func(f Figure) [][]Cell) {
	list := rows(Range)
	if !p.fits(columns, list) {
		list = rows(p.Marked)
	}
	p.Table(columns, list)
	p.Legend()
}

// fits reports whether the mandatory columns have room.
func (p *Page) fits(columns []Column, rows [][]Cell) bool {
	room := p.Columns()
	for i, c := range columns {
		if c.Optional > 0 {
			continue
		}
		wide := Width(c.Title)
		for _, row := range rows {
			wide = max(wide, Width(row[i].Text))
		}
		room -= wide + TableGap
	}
	return room >= 0
}
