package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// diffPage is a page that compares two runs.
type diffPage struct {
	*layout.Page
	uncertain bool // question marks after differences were used and not explained yet
}

// DiffText prints a diff: the change in a sentence, the levels, then the rows of the groupings in Diff.By, growth
// first.
func DiffText(w io.Writer, d *diff.Diff, o layout.Options) error {
	p := &diffPage{Page: layout.NewPage(w, o)}
	p.diffHeading(d)
	p.diffLevels(d)
	for _, by := range d.By {
		for _, g := range d.Groups {
			if g.By == by && (o.AllLevels || d.Verdict == nil || g.Level == d.Verdict.Level) {
				p.diffGroup(d, g)
			}
		}
	}
	if len(d.Notes) > 0 {
		p.Title("Notes")
		for _, note := range d.Notes {
			p.Item(sanitize.Text(note))
		}
		p.Gap()
	}
	writeNextCommands(p.Page, nextDiffs(d, o))
	if p.Err() != nil {
		return fmt.Errorf("write the diff: %w", p.Err())
	}
	return nil
}

// levelName is what a table calls a level: both runs' framework by its name.
func levelName(d *diff.Diff, level string) string {
	if name := layout.FrameworkName(d.New.Versions); level == report.LevelFramework &&
		name == layout.FrameworkName(d.Base.Versions) {
		return name
	}
	return level
}

// ofMoments is the moment of the compared figures: "peak", or the names of the two moments.
func ofMoments(d *diff.Diff) (base, changed string) {
	name := func(side diff.Side) string {
		if side.Moment == "peak" {
			return "peak"
		}
		return "at " + sanitize.Text(side.Moment)
	}
	return name(d.Base), name(d.New)
}

func (p *diffPage) diffLevels(d *diff.Diff) {
	if len(d.Levels) == 0 {
		p.Line("  Neither run made a CUDA memory call.")
		p.Gap()
		return
	}
	p.RangedTable(p.diffColumns(d, "", true), func(f layout.Figure) [][]layout.Cell { return p.diffLevelRows(d, f) })
	p.explainMarks()
	p.Gap()
	p.diffLost("base", d.Base.Bounds)
	p.diffLost("new", d.New.Bounds)
}

// diffColumns are those of the levels' table, and with a state also of the groups'. What was left at the end and the
// numbers of allocations are the same on both sides of one run.
func (p *diffPage) diffColumns(d *diff.Diff, title string, levels bool) []layout.Column {
	base, changed := ofMoments(d)
	if base == changed {
		base, changed = base+", base", "new"
	}
	columns := []layout.Column{{Title: title}}
	if !levels {
		columns = append(columns, layout.Column{})
	}
	columns = append(columns, layout.Column{Title: base, Right: true, Optional: 1},
		layout.Column{Title: changed, Right: true, Optional: 1}, layout.Column{Title: "change", Right: true},
		layout.Column{Right: true, Optional: 3})
	if !d.SameRun {
		columns = append(columns, layout.Column{Title: "Δ at end", Right: true, Optional: 4},
			layout.Column{Title: "Δ allocs", Right: true, Optional: 5})
	}
	if p.ASCII {
		for i := range columns {
			columns[i].Title = strings.TrimPrefix(columns[i].Title, "Δ ")
		}
	}
	return columns
}

func (p *diffPage) diffLevelRows(d *diff.Diff, f layout.Figure) (rows [][]layout.Cell) {
	devices := make(map[string]bool)
	for _, l := range d.Levels {
		devices[l.Device] = true
	}
	single := len(devices) <= 2 // one and "all"
	for _, l := range d.Levels {
		name := levelName(d, l.Level)
		switch {
		case l.Device == "all":
		case single && l.Level != "reserved": // the whole is the same
			continue
		case !single:
			name += ", device " + l.Device
		}
		row := []layout.Cell{{Text: name}, {Text: f(l.PeakBytes.BaseLower, l.PeakBytes.Base, d.Base.Bounds)},
			{Text: f(l.PeakBytes.NewLower, l.PeakBytes.New, d.New.Bounds)}, p.change(l.PeakBytes),
			{Text: percentChange(l.PeakBytes)}}
		if !d.SameRun {
			count := layout.Cell{}
			if l.AllocCount.Base != 0 || l.AllocCount.New != 0 {
				count.Text = layout.SignedCount(l.AllocCount.Delta)
			}
			row = append(row, layout.Cell{Text: p.change(l.LiveBytes).Text}, count)
		}
		rows = append(rows, row)
	}
	return rows
}

// percentChange is "" where there was nothing, or where nothing changed.
func percentChange(c diff.Change) string {
	if c.Percent == nil || c.Delta == 0 {
		return ""
	}
	percent := *c.Percent
	switch {
	case percent >= 10000:
		return fmt.Sprintf("%.0f times", float64(c.New)/float64(c.Base))
	case percent < 0.05 && percent > -0.05:
		return fmt.Sprintf("%+.2g%%", percent)
	}
	return fmt.Sprintf("%+.1f%%", percent)
}

// diffLost describes the effect of the lost records of one run.
func (p *diffPage) diffLost(name string, b *report.Bounds) {
	if b != nil {
		p.Styled(layout.Alarm, name+" lost", layout.Lost(b))
		p.Gap()
	}
}

// change is signed, with a question mark where lost records may have made the difference.
func (p *diffPage) change(c diff.Change) layout.Cell {
	text := signed(c)
	if c.Certain != nil && !*c.Certain {
		text.Text += " ?"
		p.uncertain = true
	}
	return text
}

// explainMarks explains the question marks since the last time.
func (p *diffPage) explainMarks() {
	if p.uncertain {
		p.Item("? not certain: lost records may have made the difference")
	}
	p.uncertain = false
}

// signed is a change in bytes: its sign repeats the meaning of its colour.
func signed(c diff.Change) layout.Cell {
	s := layout.Plain
	switch {
	case c.Delta > 0:
		s = layout.Alarm
	case c.Delta < 0:
		s = layout.Relief
	}
	return layout.Cell{Text: layout.SignedBytes(c.Delta), Style: s}
}

// states are the labels of the changes of rows.
var states = map[string]layout.Cell{diff.StateNew: {Text: "NEW", Style: layout.Alarm},
	diff.StateGrew: {Text: "GREW", Style: layout.Alarm}, diff.StateGone: {Text: "REMOVED", Style: layout.Relief},
	diff.StateShrank: {Text: "SHRANK", Style: layout.Relief},
	diff.StateSame:   {Text: "UNCHANGED"}}

func (p *diffPage) diffGroup(d *diff.Diff, g diff.Group) {
	if len(g.Rows) < 2 && !p.AllLevels { // it repeats the table of levels
		return
	}
	var rows [][]layout.Cell
	var each []string
	hidden := uint64(0)
	var changed []diff.FoldedRow
	for _, f := range g.Folded(!p.Unfolded) {
		if f.Row.State != diff.StateSame {
			changed = append(changed, f)
		}
	}
	shown := largestChanges(len(changed), p.RowLimit(), func(i int) int64 { return changed[i].Row.PeakBytes.Delta })
	for i, f := range changed {
		r := &f.Row
		if !shown[i] {
			hidden++
			continue
		}
		row := []layout.Cell{{Text: diffTitle(g.By, r)}, states[r.State],
			{Text: p.Marked(r.PeakBytes.BaseLower, r.PeakBytes.Base, d.Base.Bounds)},
			{Text: p.Marked(r.PeakBytes.NewLower, r.PeakBytes.New, d.New.Bounds)}, p.change(r.PeakBytes),
			{Text: percentChange(r.PeakBytes)}}
		if r.PeakBytes.Delta == 0 { // the rest changed
			row[1].Text += " at end"
		}
		if !d.SameRun {
			row = append(row, layout.Cell{Text: p.change(r.LiveBytes).Text},
				layout.Cell{Text: layout.SignedCount(r.AllocCount.Delta)})
		}
		rows, each = append(rows, row), append(each, p.Each(f.Count, f.Least, f.Most))
	}
	if len(rows) == 0 {
		p.Line("%s by %s: %s", layout.UpperFirst(levelName(d, g.Level)), g.By, layout.Plural(uint64(g.Unchanged), "row unchanged",
			"rows unchanged"))
		p.Gap()
		return
	}
	followers := followed(changed)
	p.Title(groupTitle(d, &g, len(followers) > 0))
	p.Gap()
	columns, rows := layout.EachColumn(p.diffColumns(d, g.By, false), rows, each)
	p.Table(columns, rows)
	p.Legend()
	p.explainMarks()
	for _, text := range followers {
		p.Item(text)
	}
	if hidden > 0 {
		p.Line("  %s not shown; -n 0 shows all", layout.Plural(hidden, "smaller change", "smaller changes"))
	}
	if g.Unchanged > 0 {
		p.Line("  %s", layout.Plural(uint64(g.Unchanged), "row unchanged", "rows unchanged"))
	}
	p.Gap()
}

func groupTitle(d *diff.Diff, g *diff.Group, followers bool) string {
	order := "growth first"
	if followers {
		order += ", then what follows a wider module"
	}
	return fmt.Sprintf("%s by %s, %s", layout.UpperFirst(levelName(d, g.Level)), g.By, order)
}

// largestChanges picks the rows to print of a sorted list, growth first: the largest changes of either sign, which are
// at both ends.
func largestChanges(count, limit int, delta func(i int) int64) []bool {
	show := make([]bool, count)
	order := make([]int, count)
	for i := range order {
		order[i] = i
	}
	size := func(i int) uint64 {
		if d := delta(i); d < 0 {
			return -uint64(d)
		}
		return uint64(delta(i))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch x, y := size(a), size(b); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	for _, i := range order[:min(limit, count)] {
		show[i] = true
	}
	return show
}

// diffTitle names a row. A place that moved includes its previous line.
func diffTitle(by string, r *diff.Row) string {
	if line := r.WasLine(); line > 0 {
		return fmt.Sprintf("%s (was line %d)", sanitize.Text(r.Title()), line)
	}
	return sanitize.Text(layout.KeyName(by, r.Title()))
}
