package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer/diff"
	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// diffPage is a page that compares two runs.
type diffPage struct {
	*page
	doubted bool // question marks behind differences were used and not explained yet
}

// DiffText writes a diff for people: what changed in a sentence, the levels, then the rows of the groupings in Diff.By,
// growth first.
func DiffText(w io.Writer, d *diff.Diff, o Options) error {
	p := &diffPage{page: newPage(w, o)}
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
		p.title("Notes")
		for _, note := range d.Notes {
			p.item(visible.Text(note))
		}
	}
	if p.failure() != nil {
		return fmt.Errorf("write the diff: %w", p.failure())
	}
	return nil
}

// diffHeading begins with what changed, and says what was compared.
func (p *diffPage) diffHeading(d *diff.Diff) {
	p.title("memtrace diff")
	p.gap()
	for _, part := range Wrap(DiffVerdict(d), p.columns()-2) {
		p.line("  %s", p.paint(strong, part))
	}
	p.gap()
	if d.SameRun {
		p.diffSide("run", d.New, "")
		p.field("base", sideMoment(d.Base))
		p.field("new", sideMoment(d.New))
	} else {
		p.diffSide("base", d.Base, momentUnlessPeak(d.Base))
		p.diffSide("new", d.New, momentUnlessPeak(d.New))
	}
	p.gap()
}

func (p *diffPage) diffSide(name string, side diff.Side, at string) {
	if side.Path != "" {
		p.oneLine(name, visible.Text(side.Path)+at)
		name, at = "", ""
	}
	text := cmp.Or(command(side.Process), "unknown") + " (" + process(side.Process) + "; " + run(side.Process) + ")" + at
	if side.Process.Imported != "" {
		text = "imported: " + visible.Text(side.Process.Imported) + at
	}
	if versions := software(side.Versions); versions != "" {
		text += ", " + versions
	}
	if side.NullGPU {
		text += ", null GPU"
	}
	p.field(name, text)
	if side.Window != nil {
		p.styled(strong, "", "window "+windowWords(side.Window, side.Process.DurationNS))
	}
}

// sideMoment says which moment a side is of.
func sideMoment(side diff.Side) string {
	text := moment(side.TimeNS)
	if side.Moment == "peak" {
		return "the peak, " + text
	}
	return visible.Text(side.Moment) + ", " + text
}

func momentUnlessPeak(side diff.Side) string {
	if side.Moment == "peak" {
		return ""
	}
	return ", at " + sideMoment(side)
}

// ofMoments is what the compared figures are of: "peak", or the names of the two moments.
func ofMoments(d *diff.Diff) (base, changed string) {
	name := func(side diff.Side) string {
		if side.Moment == "peak" {
			return "peak"
		}
		return "at " + visible.Text(side.Moment)
	}
	return name(d.Base), name(d.New)
}

func (p *diffPage) diffLevels(d *diff.Diff) {
	if len(d.Levels) == 0 {
		p.line("  Neither run made a CUDA memory call.")
		p.gap()
		return
	}
	p.rangedTable(p.diffColumns(d, "", true), func(f figure) [][]cell { return p.diffLevelRows(d, f) })
	p.doubts()
	p.gap()
	p.diffLost("base", d.Base.Bounds)
	p.diffLost("new", d.New.Bounds)
}

// diffColumns are those of the levels' table, and with a state also of the groups'. What was left at the end and the
// numbers of allocations are the same on both sides of one run.
func (p *diffPage) diffColumns(d *diff.Diff, title string, levels bool) []column {
	base, changed := ofMoments(d)
	if base == changed {
		base, changed = base+", base", "new"
	}
	columns := []column{{title: title}}
	if !levels {
		columns = append(columns, column{})
	}
	columns = append(columns, column{title: base, right: true, optional: 1}, column{title: changed, right: true, optional: 1}, column{title: "change", right: true}, column{right: true, optional: 3})
	if !d.SameRun {
		columns = append(columns, column{title: "Δ at end", right: true, optional: 4}, column{title: "Δ allocs", right: true, optional: 5})
	}
	if p.ASCII {
		for i := range columns {
			columns[i].title = strings.TrimPrefix(columns[i].title, "Δ ")
		}
	}
	return columns
}

func (p *diffPage) diffLevelRows(d *diff.Diff, f figure) (rows [][]cell) {
	devices := make(map[string]bool)
	for _, l := range d.Levels {
		devices[l.Device] = true
	}
	single := len(devices) <= 2 // one and "all"
	for _, l := range d.Levels {
		name := l.Level
		switch {
		case l.Device == "all":
		case single && l.Level != "reserved": // the whole says the same
			continue
		case !single:
			name += ", device " + l.Device
		}
		row := []cell{{name, plain}, {f(l.PeakBytes.BaseLower, l.PeakBytes.Base, d.Base.Bounds), plain},
			{f(l.PeakBytes.NewLower, l.PeakBytes.New, d.New.Bounds), plain}, p.change(l.PeakBytes), {percentChange(l.PeakBytes), plain}}
		if !d.SameRun {
			count := cell{}
			if l.AllocCount.Base != 0 || l.AllocCount.New != 0 {
				count.text = signedCount(l.AllocCount.Delta)
			}
			row = append(row, cell{p.change(l.LiveBytes).text, plain}, count)
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

// diffLost says what the lost records of one run mean.
func (p *diffPage) diffLost(name string, b *report.Bounds) {
	if b != nil {
		p.styled(alarm, name+" lost", lostWords(b))
		p.gap()
	}
}

// change is signed, with a question mark where lost records may have made the difference.
func (p *diffPage) change(c diff.Change) cell {
	text := signed(c)
	if c.Certain != nil && !*c.Certain {
		text.text += " ?"
		p.doubted = true
	}
	return text
}

// doubts explains the question marks since the last time.
func (p *diffPage) doubts() {
	if p.doubted {
		p.item("? not certain: lost records may have made the difference")
	}
	p.doubted = false
}

// signed is a change in bytes: its sign says what its colour repeats.
func signed(c diff.Change) cell {
	s := plain
	switch {
	case c.Delta > 0:
		s = alarm
	case c.Delta < 0:
		s = relief
	}
	return cell{SignedBytes(c.Delta), s}
}

// states are what a row became, as people read it.
var states = map[string]cell{diff.StateNew: {"NEW", alarm}, diff.StateGrew: {"GREW", alarm}, diff.StateGone: {"REMOVED", relief}, diff.StateShrank: {"SHRANK", relief},
	diff.StateSame: {"UNCHANGED", plain}}

func (p *diffPage) diffGroup(d *diff.Diff, g diff.Group) {
	if len(g.Rows) < 2 && !p.AllLevels { // it repeats the table of levels
		return
	}
	var rows [][]cell
	var each []string
	hidden := uint64(0)
	var changed []diff.FoldedRow
	for _, f := range g.Folded(!p.Unfolded) {
		if f.Row.State != diff.StateSame {
			changed = append(changed, f)
		}
	}
	shown := largestChanges(len(changed), p.rowLimit(), func(i int) int64 { return changed[i].Row.PeakBytes.Delta })
	for i, f := range changed {
		r := &f.Row
		if !shown[i] {
			hidden++
			continue
		}
		row := []cell{{diffTitle(r), plain}, states[r.State], {p.marked(r.PeakBytes.BaseLower, r.PeakBytes.Base, d.Base.Bounds), plain},
			{p.marked(r.PeakBytes.NewLower, r.PeakBytes.New, d.New.Bounds), plain}, p.change(r.PeakBytes), {percentChange(r.PeakBytes), plain}}
		if r.PeakBytes.Delta == 0 { // it is what was left that changed
			row[1].text += " at end"
		}
		if !d.SameRun {
			row = append(row, cell{p.change(r.LiveBytes).text, plain}, cell{signedCount(r.AllocCount.Delta), plain})
		}
		rows, each = append(rows, row), append(each, p.each(f.Count, f.Least, f.Most))
	}
	if len(rows) == 0 {
		p.line("%s by %s: %s", upperFirst(g.Level), g.By, plural(uint64(g.Unchanged), "row unchanged", "rows unchanged"))
		p.gap()
		return
	}
	p.title(fmt.Sprintf("%s by %s, growth first", upperFirst(g.Level), g.By))
	p.gap()
	columns, rows := eachColumn(p.diffColumns(d, g.By, false), rows, each)
	p.table(columns, rows)
	p.legend()
	p.doubts()
	if hidden > 0 {
		p.line("  %s not shown; -n 0 shows all", plural(hidden, "smaller change", "smaller changes"))
	}
	if g.Unchanged > 0 {
		p.line("  %s", plural(uint64(g.Unchanged), "row unchanged", "rows unchanged"))
	}
	p.gap()
}

// largestChanges picks what to print of a sorted list, growth first: the changes that are largest whichever way, which
// stand at both ends.
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

// diffTitle names a row. A place that moved is told the line where it was.
func diffTitle(r *diff.Row) string {
	if line := diff.LineOf(r.BaseKey); line > 0 {
		return fmt.Sprintf("%s (was line %d)", visible.Text(r.Title()), line)
	}
	return visible.Text(r.Title())
}
