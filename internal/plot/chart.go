// Package plot draws summaries as pictures: PNG, SVG and PDF. A Chart holds the exact values that a picture shows; its
// bytes depend on nothing else.
package plot

import (
	"encoding/csv"
	"io"
	"strconv"

	"memtrace/internal/sanitize"
)

// Chart is one picture before it is drawn. It has either Series over one axis, or one of the others below them. Texts
// may contain text from a trace: drawing cleans them.
type Chart struct {
	Kind  string
	Title string
	Note  string // a second, smaller line

	XLabel string
	Time   bool  // X is nanoseconds
	Stack  bool  // series are stacked, the first one lowest
	Width  int64 // of the columns of a stack, which begin at X; 0: they are 1 wide, centred on X
	Series []Series
	Peak   *Point  // marked and labelled
	OOM    []int64 // where memory ran out
	Lanes  []Lane  // below the axis

	begin, end float64 // of the axis, as it is drawn

	Panels []Panel
	Stacks []Panel // adjacent columns
	Sizes  []SizeClass
	Flame  *Flame
	Map    *Map
}

// Series are values over X: nanoseconds, or numbers of iterations.
type Series struct {
	Name   string
	X      []int64
	Bytes  []int64
	Line   bool // on a stacked chart: a line that is not part of the stack
	Level  bool // a value holds until the next X
	Filled bool
	Rest   bool // of all that have no layer of their own
	Growth bool // the line of what stays, which grows
}

// Point is a place in a chart.
type Point struct {
	X     int64
	Bytes int64
	Text  string
}

// Panel is a run's bars, or one column of parts.
type Panel struct {
	Title string
	Bars  []Bar
	Total int64 // that percentages are of, in bytes
}

// Bar is one value. Bytes are negative only for untrackable memory.
type Bar struct {
	Name  string
	Bytes int64
	Look  Look
}

// Look is the kind of a bar.
type Look uint8

const (
	Plain       Look = iota
	Others           // matched by no rule: white
	Untrackable      // in no trace: hatched
)

// CSV writes the values of a chart, exact, one a row. Names are escaped, so that each row is a line.
func (c *Chart) CSV(w io.Writer) error {
	rows := c.rows()
	for _, row := range rows {
		for i := range row {
			row[i] = sanitize.Cell(sanitize.Text(row[i]))
		}
	}
	return csv.NewWriter(w).WriteAll(rows)
}

func (c *Chart) rows() [][]string {
	switch {
	case len(c.Sizes) > 0:
		return sizeRows(c.Sizes)
	case c.Flame != nil:
		return flameRows(c.Flame)
	case c.Map != nil:
		return mapRows(c.Map)
	}
	x := "x"
	if c.Time {
		x = "time_ns"
	}
	rows := [][]string{{"group", "name", x, "bytes"}}
	for _, s := range c.Series {
		for i, bytes := range s.Bytes {
			rows = append(rows, []string{"", s.Name, strconv.FormatInt(s.X[i], 10), strconv.FormatInt(bytes, 10)})
		}
	}
	for _, p := range append(append([]Panel(nil), c.Panels...), c.Stacks...) {
		for _, b := range p.Bars {
			rows = append(rows, []string{p.Title, b.Name, "", strconv.FormatInt(b.Bytes, 10)})
		}
	}
	return rows
}
