package layout

import "math"

// Options shape text output. The zero value is 100 columns, Unicode, no colour, every row that fits a screen.
type Options struct {
	Width      int    // columns; 0: 100; less than 60 is taken as 60
	ASCII      bool   // no characters beyond ASCII
	Color      bool   // ANSI colours; the text repeats their meaning
	Rows       int    // rows of a table before the rest is summed up; 0: 12, on the first screen fewer; negative: all
	Details    bool   // of a report: everything that is known, not only the first screen
	FullStacks bool   // every line of every call stack
	AllLevels  bool   // of a diff: every grouping at every level, also where a table repeats another
	Unfolded   bool   // repeated modules and parameters each have a separate row
	Path       string // the trace, for the heading and the commands that the text proposes; "" leaves them out
	StillRuns  bool   // the process that a snapshot is of goes on

	// Of views only.
	Depth      int  // levels of modules below the root that View modules shows; negative: all
	DepthAsked bool // every level counts; otherwise those that only wrap another do not
	Period     int  // interval of the iterations of an epoch in View tbd; 0: 1
	Epoch      int  // only this epoch in View tbd, counted from 1; 0: all
	Unit       Unit // of CSV files and of View tbd; "": bytes in the former, MB in the latter
}

// DefaultDepth is enough for the layers of most models, and their parts.
const DefaultDepth = 3

const (
	defaultWidth = 100
	minWidth     = 60
	defaultRows  = 12
)

// Columns is how many columns a page has.
func (o Options) Columns() int {
	if o.Width == 0 {
		return defaultWidth
	}
	return max(o.Width, minWidth)
}

// RowLimit is how many rows a table has before the rest is summed up.
func (o Options) RowLimit() int {
	switch {
	case o.Rows == 0:
		return defaultRows
	case o.Rows < 0:
		return math.MaxInt
	}
	return o.Rows
}

// DepthLimit is how many levels of a tree are shown.
func (o Options) DepthLimit() int {
	if o.Depth < 0 {
		return math.MaxInt
	}
	return o.Depth
}

// Fewer is how many rows a table of the first screen has, unless the number was given.
func (o Options) Fewer(rows int) int {
	if o.Rows < 0 {
		return math.MaxInt
	}
	if o.Rows > 0 {
		return o.Rows
	}
	return rows
}
