package render

import (
	"fmt"
	"io"

	"memtrace/analyzer"
)

// DiffText writes a diff for people: the levels, then every grouping's rows, growth first.
func DiffText(w io.Writer, d *analyzer.Diff, o Options) error {
	p := &page{w: w, o: o}
	p.title("memtrace diff")
	p.gap()
	p.diffSide("base", d.Base)
	p.diffSide("new", d.New)
	p.gap()
	p.diffLevels(d)
	for _, g := range d.Groups {
		p.diffGroup(d, g)
	}
	if len(d.Notes) > 0 {
		p.title("Notes")
		for _, note := range d.Notes {
			p.item(clean(note))
		}
	}
	if p.err != nil {
		return fmt.Errorf("write the diff: %w", p.err)
	}
	return nil
}

func (p *page) diffSide(name string, side analyzer.DiffSide) {
	text := orUnknown(command(side.Process)) + " (" + process(side.Process) + "; " + run(side.Process) + ")"
	if versions := software(side.Versions); versions != "" {
		text += ", " + versions
	}
	if side.NullGPU {
		text += ", null GPU"
	}
	p.field(name, text)
}

func (p *page) diffLevels(d *analyzer.Diff) {
	if len(d.Levels) == 0 {
		p.line("  Neither run made a CUDA memory call.")
		p.gap()
		return
	}
	p.title("Peaks and what was left")
	p.gap()
	columns := []column{{}, {title: "peak, base", right: true, optional: 1}, {title: "new", right: true, optional: 1}, {title: "change", right: true},
		{title: "at end", right: true, optional: 2}, {title: "allocs", right: true, optional: 3}}
	p.rangedTable(columns, func(f figure) [][]cell { return p.diffLevelRows(d, f) })
	p.doubts()
	p.gap()
	p.diffLost("base", d.Base.Bounds)
	p.diffLost("new", d.New.Bounds)
}

func (p *page) diffLevelRows(d *analyzer.Diff, f figure) (rows [][]cell) {
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
		default:
			name += ", device " + l.Device
		}
		count := cell{}
		if l.AllocCount.Base != 0 || l.AllocCount.New != 0 {
			count.text = signedCount(l.AllocCount.Delta)
		}
		rows = append(rows, []cell{{name, plain}, {f(l.PeakBytes.BaseLower, l.PeakBytes.Base, d.Base.Bounds), plain},
			{f(l.PeakBytes.NewLower, l.PeakBytes.New, d.New.Bounds), plain}, p.change(l.PeakBytes), {p.change(l.LiveBytes).text, plain}, count})
	}
	return rows
}

// diffLost says what the lost records of one run mean.
func (p *page) diffLost(name string, b *analyzer.Bounds) {
	if b != nil {
		p.styled(alarm, name+" lost", lostWords(b))
		p.gap()
	}
}

// change is signed, with a question mark where lost records may have made the difference.
func (p *page) change(c analyzer.Change) cell {
	text := signed(c)
	if c.Certain != nil && !*c.Certain {
		text.text += " ?"
		p.doubted = true
	}
	return text
}

// doubts explains the question marks since the last time.
func (p *page) doubts() {
	if p.doubted {
		p.item("? not certain: lost records may have made the difference")
	}
	p.doubted = false
}

// signed is a change in bytes: its sign says what its colour repeats.
func signed(c analyzer.Change) cell {
	s := plain
	switch {
	case c.Delta > 0:
		s = alarm
	case c.Delta < 0:
		s = relief
	}
	return cell{SignedBytes(c.Delta), s}
}

var stateStyles = map[string]style{analyzer.StateNew: alarm, analyzer.StateGrew: alarm, analyzer.StateGone: relief, analyzer.StateShrank: relief}

func (p *page) diffGroup(d *analyzer.Diff, g analyzer.DiffGroup) {
	var rows [][]cell
	same := 0
	hidden := 0
	shown := p.diffRows(g.Rows)
	for i, r := range g.Rows {
		switch {
		case r.State == analyzer.StateSame:
			same++
		case !shown[i]:
			hidden++
		default:
			rows = append(rows, []cell{{diffTitle(&r), plain}, {r.State, stateStyles[r.State]}, {p.marked(r.PeakBytes.BaseLower, r.PeakBytes.Base, d.Base.Bounds), plain},
				{p.marked(r.PeakBytes.NewLower, r.PeakBytes.New, d.New.Bounds), plain}, p.change(r.PeakBytes), {p.change(r.LiveBytes).text, plain}, {signedCount(r.AllocCount.Delta), plain}})
		}
	}
	p.title(fmt.Sprintf("%s by %s, growth first", upperFirst(g.Level), g.By))
	p.gap()
	if len(rows) > 0 {
		p.table([]column{{title: g.By}, {}, {title: "at peak, base", right: true, optional: 2}, {title: "new", right: true, optional: 2},
			{title: "change", right: true}, {title: "at end", right: true, optional: 1}, {title: "allocs", right: true, optional: 3}}, rows)
		p.legend()
		p.doubts()
	}
	if hidden > 0 {
		p.line("  %s smaller changes not shown", Count(uint64(hidden)))
	}
	if same > 0 {
		p.line("  %s", plural(uint64(same), "key is the same in both", "keys are the same in both"))
	}
	p.gap()
}

// diffRows picks the rows to print: from both ends of the list, where the greatest growth and the greatest shrinking stand.
func (p *page) diffRows(rows []analyzer.DiffRow) []bool {
	show := make([]bool, len(rows))
	var changed []int
	for i, r := range rows {
		if r.State != analyzer.StateSame && (r.PeakBytes.Delta != 0 || r.LiveBytes.Delta != 0 || r.AllocCount.Delta != 0) {
			changed = append(changed, i)
		}
	}
	for head, tail, left := 0, len(changed)-1, p.o.rows(); left > 0 && head <= tail; left-- {
		// Growth is why people look; shrinking gets its turn when it is the greater change.
		if size(rows[changed[head]]) >= size(rows[changed[tail]]) {
			show[changed[head]] = true
			head++
		} else {
			show[changed[tail]] = true
			tail--
		}
	}
	return show
}

// size is how much a row changed, whichever way.
func size(r analyzer.DiffRow) uint64 {
	if r.PeakBytes.Delta < 0 {
		return -uint64(r.PeakBytes.Delta)
	}
	return uint64(r.PeakBytes.Delta)
}

// diffTitle names a row. A place that moved is told the line where it was.
func diffTitle(r *analyzer.DiffRow) string {
	if line := analyzer.LineOf(r.BaseKey); line > 0 {
		return fmt.Sprintf("%s (was line %d)", clean(r.Title()), line)
	}
	return clean(r.Title())
}
