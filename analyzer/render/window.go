package render

import (
	"cmp"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// selection says what of the run is shown.
func writeSelection(p *page, s *report.Summary) {
	if s.Window != nil {
		p.styled(strong, "window", windowFact(s).Value)
	}
	if only := filters(s); len(only) > 0 {
		p.field("only", visible.Text(strings.Join(only, ", ")))
	}
}

// briefWindowRows is how many keys the first screen shows of a window.
const briefWindowRows = 3

// shortWindow is the window's part of the first screen.
func (p *screen) shortWindow(s *report.Summary) {
	if l := mainWindow(s); l != nil {
		writeWindowTotals(p.page, s, l)
		if g := l.By(s.By[0]); g != nil {
			writeWindowRows(p.page, s, l, g, p.rows(briefWindowRows))
		}
	}
}

// window says what became of the blocks.
func writeWindow(p *page, s *report.Summary) {
	if s.Window == nil {
		return
	}
	for i := range s.Window.Levels {
		l := &s.Window.Levels[i]
		writeWindowTotals(p, s, l)
		for _, by := range s.By {
			if g := l.By(by); g != nil && l.Level == s.MainLevel() {
				writeWindowRows(p, s, l, g, p.rowLimit())
			}
		}
	}
}

func mainWindow(s *report.Summary) *report.WindowLevel {
	if s.Window == nil || len(s.By) == 0 {
		return nil
	}
	return s.Window.Level(s.MainLevel())
}

func writeWindowTotals(p *page, s *report.Summary, l *report.WindowLevel) {
	title := "Driver memory"
	if l.Level == report.LevelFramework {
		title = "Blocks of " + FrameworkName(s.Versions)
	}
	var rows [][]cell
	add := func(name string, n report.BlockSum) {
		rows = append(rows, []cell{{text: name}, {Bytes(n.Bytes), strong}, {text: Count(n.Count)}})
	}
	add("live at its start", l.Start)
	add("  of these, freed in it", l.Freed)
	add("allocated in it, live at its end", l.New)
	add("live at its end", l.End)
	add("allocated and freed in it", l.Passed)
	p.table([]column{{title: title + " in the window"}, {title: "bytes", right: true}, {title: "blocks", right: true}}, rows)
	p.gap()
}

// windowRows lists keys, those that hold most more than before first, those that hold less last.
func writeWindowRows(p *page, s *report.Summary, l *report.WindowLevel, g *report.WindowGroup, limit int) {
	var rows [][]cell
	hidden := report.WindowRow{}
	count := 0
	for _, r := range g.Rows {
		if r.New.Bytes+r.Freed.Bytes == 0 {
			continue
		}
		if count++; count <= limit {
			rows = append(rows, windowCells(visible.Text(cmp.Or(r.Label, r.Key)), &r))
		} else {
			hidden.Plus(&r.WindowBlocks)
		}
	}
	if count > limit {
		rows = append(rows, windowCells(plural(uint64(count-limit), "more", "more"), &hidden))
	}
	if count == 0 {
		return
	}
	p.table([]column{{title: "By " + g.By}, {title: "at start", right: true, optional: 1}, {title: "freed", right: true}, {title: "new", right: true}, {title: "at end", right: true},
		{title: "change", right: true, optional: 2}}, rows)
	p.gap()
}

func windowCells(name string, r *report.WindowRow) []cell {
	return []cell{{text: name}, {text: Bytes(r.Start.Bytes)}, {text: Bytes(r.Freed.Bytes)}, {Bytes(r.New.Bytes), strong}, {text: Bytes(r.End.Bytes)}, {text: SignedBytes(r.Change())}}
}

// unfinished says that no iteration ended, in other words than a whole run's where there is a window.
func unfinished(w *report.Window, words string) string {
	if w != nil {
		return "none ended in the window"
	}
	return words
}
