package render

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

const (
	stackLines    = 6  // of a call stack, unless all were requested
	functionWidth = 32 // columns that functions get before their source positions do
)

// ownMark marks the program's own code, with or without colours.
func ownMark(o layout.Options, own bool) string {
	switch {
	case !own:
		return "  "
	case o.ASCII:
		return "> "
	}
	return "▸ "
}

func ownStyle(own bool) layout.Style {
	if own {
		return layout.Strong
	}
	return layout.Faint
}

// writeSites lists the places that allocated the memory, each with its call stack.
func writeSites(p *layout.Page, s *report.Summary) {
	if s.Sites == nil || !worthShowing(s.Sites) {
		return
	}
	places := s.Sites.Places
	whole := s.Sites.WholeBytes
	if len(s.Ledgers) > 0 {
		whole = s.Ledgers[0].WholeBytes // shares are of the same whole as in the ledger above
	}
	shown := places[:siteLimit(p.Options, places, whole)]
	p.Title("Where it was allocated: " + frameworkOrDriver(s) + " at " + sitesMoment(s))
	p.Gap()
	for _, place := range shown {
		writePlace(p, &place, whole)
	}
	writeCallers(p, s)
	if rest := places[len(shown):]; len(rest) > 0 {
		var bytes uint64
		for _, place := range rest {
			bytes += place.Bytes
		}
		p.Line("  %s, %s (%s)", layout.Plural(uint64(len(rest)), "more place", "more places"), layout.Bytes(bytes),
			layout.PercentOf(bytes, whole))
		p.Gap()
	}
}

// sites is how many places are shown with their stacks, which take more lines than the rows of a table: a third as
// many, and after the first only those that hold a hundredth of the whole or more.
func siteLimit(o layout.Options, places []report.Site, whole uint64) int {
	if o.Rows < 0 {
		return len(places)
	}
	n := 0
	for n < len(places) && n < (o.RowLimit()+2)/3 && (n == 0 || places[n].Bytes >= whole/100) {
		n++
	}
	return n
}

// worthShowing reports whether the stacks show more than the library that made the call.
func worthShowing(s *report.Sites) bool {
	return slices.ContainsFunc(s.Places, func(p report.Site) bool { return len(p.Frames) > 1 })
}

func frameworkOrDriver(s *report.Summary) string {
	if s.Sites.Level == "framework" {
		return layout.FrameworkBlocks(s.Versions)
	}
	return s.Sites.Level + " blocks"
}

func sitesMoment(s *report.Summary) string {
	if s.Sites.Moment == "peak" {
		return "the peak"
	}
	return sanitize.Text(s.Sites.Moment)
}

func writePlace(p *layout.Page, place *report.Site, whole uint64) {
	numbers := fmt.Sprintf("%10s  %6s  ", layout.Bytes(place.Bytes), layout.PercentOf(place.Bytes, whole))
	name := layout.Clip(sanitize.Text(place.Key), p.Columns()-len(numbers), p.ASCII)
	count := layout.Plural(place.AllocCount, "allocation", "allocations")
	if place.AllocCount == 0 {
		count = "allocated before the window"
	}
	if place.StackCount > 1 {
		count += fmt.Sprintf("; the largest of %d stacks", place.StackCount)
	}
	between := "  "
	if len(numbers)+layout.Width(name)+2+layout.Width(count) > p.Columns() {
		between = "\n" + strings.Repeat(" ", max(0, min(len(numbers), p.Columns()-layout.Width(count))))
	}
	p.Line("%s%s%s", p.Paint(layout.Strong, numbers+name), between, p.Paint(layout.Faint, count))
	writeStack(p, place)
	p.Gap()
}

// writeStack prints frames, innermost first, with their source positions.
func writeStack(p *layout.Page, place *report.Site) {
	picked := pickFrames(place.Frames, stackLimit(p.Options))
	const indent = 8
	width, longest := 0, 0
	for _, f := range picked {
		width = max(width, layout.Width(sanitize.Text(f.Function)))
		longest = max(longest, layout.Width(sanitize.Text(positionOf(&f))))
	}
	width = min(width, max(functionWidth, p.Columns()-indent-4-longest))
	for _, f := range picked {
		function := layout.Clip(sanitize.Text(f.Function), width, p.ASCII)
		where := layout.Clip(sanitize.Text(positionOf(&f)), p.Columns()-indent-4-width, p.ASCII)
		text := function
		if where != "" {
			text = layout.Pad(function, width) + "  " + where
		}
		p.Line("%*s%s%s", indent, "", ownMark(p.Options, f.User), p.Paint(ownStyle(f.User), text))
	}
	if more := len(place.Frames) - len(picked); more > 0 {
		p.Line("%*s  %s", indent, "", p.Paint(layout.Faint, layout.Plural(uint64(more), "more frame", "more frames")))
	}
	if place.Cut != "" {
		p.Line("%*s  %s", indent, "", p.Paint(layout.Faint, "cut: "+place.Cut))
	}
}

func stackLimit(o layout.Options) int {
	if o.FullStacks {
		return math.MaxInt
	}
	return stackLines
}

// positionOf is the position of a frame's code: source file and line, or for native code without them the object file.
func positionOf(f *report.StackFrame) string {
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	case f.File != "":
		return f.File
	case f.Nameless || f.Operator || f.Module == "":
		return ""
	}
	return baseName(f.Module)
}

func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// pickFrames keeps a limited number of frames in their order: the innermost one, then the program's own from the inside
// out, then others.
func pickFrames(frames []report.StackFrame, limit int) []report.StackFrame {
	if len(frames)-1 <= limit { // the line that counts the hidden frames takes as much room as one frame
		return frames
	}
	keep := make([]bool, len(frames))
	left := limit
	for _, wanted := range []func(int) bool{
		func(i int) bool { return i == 0 },
		func(i int) bool { return frames[i].User },
		func(int) bool { return true },
	} {
		for i := range frames {
			if left > 0 && !keep[i] && wanted(i) {
				keep[i] = true
				left--
			}
		}
	}
	var picked []report.StackFrame
	for i, f := range frames {
		if keep[i] {
			picked = append(picked, f)
		}
	}
	return picked
}

// ownersWithSites is the part of the whole that an owner must hold for its places to be listed.
const ownersWithSites = 20

// siteRows are the places that belong to a row of a ledger.
func siteRows(p *layout.Page, o *owner, whole uint64, columns int) [][]layout.Cell {
	var rows [][]layout.Cell
	if o.bytes < whole/ownersWithSites {
		return nil
	}
	for _, site := range o.sites {
		row := make([]layout.Cell, columns)
		// under its library, a function need not repeat it
		name := sanitize.Text(strings.TrimSuffix(site.Key, " ("+o.key+")"))
		row[0] = layout.Cell{Text: "  " + ownMark(p.Options, site.User) + name, Style: ownSiteStyle(site.User)}
		row[1] = layout.Cell{Text: layout.Bytes(site.Bytes), Style: layout.Faint}
		row[2] = layout.Cell{Text: layout.PercentOf(site.Bytes, whole), Style: layout.Faint}
		rows = append(rows, row)
	}
	return rows
}

func ownSiteStyle(own bool) layout.Style {
	if own {
		return layout.Plain
	}
	return layout.Faint
}
