package render

import (
	"cmp"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// briefWindowRows is how many keys the first screen shows of a window.
const briefWindowRows = 3

// shortWindow is the window's part of the first screen.
func (p *screen) shortWindow(s *report.Summary) {
	if l := mainWindow(s); l != nil {
		writeWindowTotals(p.Page, s, l)
		if g := l.By(s.By[0]); g != nil {
			writeWindowRows(p.Page, s, l, g, p.rows(briefWindowRows))
		}
	}
}

// writeWindow prints the fate of the blocks.
func writeWindow(p *layout.Page, s *report.Summary) {
	if s.Window == nil {
		return
	}
	for i := range s.Window.Levels {
		l := &s.Window.Levels[i]
		writeWindowTotals(p, s, l)
		for _, by := range s.By {
			if g := l.By(by); g != nil && l.Level == s.MainLevel() {
				writeWindowRows(p, s, l, g, p.RowLimit())
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

func writeWindowTotals(p *layout.Page, s *report.Summary, l *report.WindowLevel) {
	title := "Driver blocks"
	if l.Level == report.LevelFramework {
		title = layout.FrameworkBlocks(s.Versions)
	}
	var rows [][]layout.Cell
	add := func(name string, n report.BlockSum) {
		rows = append(rows, []layout.Cell{{Text: name}, {Text: layout.Bytes(n.Bytes), Style: layout.Strong},
			{Text: layout.Count(n.Count)}})
	}
	add("live at the start", l.Start)
	add("  of these, freed", l.Freed)
	add("allocated, still live", l.New)
	add("live at the end", l.End)
	add("allocated and freed", l.Passed)
	p.Table([]layout.Column{{Title: title + " in this window"}, {Title: "bytes", Right: true},
		{Title: "blocks", Right: true}}, rows)
	p.Gap()
}

// writeWindowRows lists keys, those that hold most more than before first, those that hold less last.
func writeWindowRows(p *layout.Page, s *report.Summary, l *report.WindowLevel, g *report.WindowGroup, limit int) {
	var rows [][]layout.Cell
	hidden := report.WindowRow{}
	count := 0
	for _, r := range g.Rows {
		if r.New.Bytes+r.Freed.Bytes == 0 {
			continue
		}
		if count++; count <= limit {
			rows = append(rows, windowCells(sanitize.Text(layout.KeyName(g.By, cmp.Or(r.Label, r.Key))), &r))
		} else {
			hidden.Plus(&r.WindowBlocks)
		}
	}
	if count > limit {
		rows = append(rows, windowCells(layout.Plural(uint64(count-limit), "more", "more"), &hidden))
	}
	if count == 0 {
		return
	}
	p.Table([]layout.Column{{Title: "By " + g.By}, {Title: "at start", Right: true, Optional: 1},
		{Title: "freed", Right: true}, {Title: "new", Right: true}, {Title: "at end", Right: true},
		{Title: "change", Right: true, Optional: 2}}, rows)
	p.Gap()
}

func windowCells(name string, r *report.WindowRow) []layout.Cell {
	return []layout.Cell{{Text: name}, {Text: layout.Bytes(r.Start.Bytes)}, {Text: layout.Bytes(r.Freed.Bytes)},
		{Text: layout.Bytes(r.New.Bytes), Style: layout.Strong}, {Text: layout.Bytes(r.End.Bytes)},
		{Text: layout.SignedBytes(r.Change())}}
}

// unfinished reports that no iteration ended, worded differently from a whole run's if there is a window.
func unfinished(w *report.Window, words string) string {
	if w != nil {
		return "none ended in the window"
	}
	return words
}
