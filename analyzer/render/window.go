package render

import (
	"fmt"
	"strings"
	"time"

	"memtrace/analyzer/report"
)

// windowPhrase is the window in a sentence, "" for a whole run.
func windowPhrase(w *report.Window) string {
	switch {
	case w == nil:
		return ""
	case w.From == "":
		return " before " + clean(w.To)
	case w.To == "":
		return " after " + clean(w.From)
	}
	return fmt.Sprintf(" between %s and %s", clean(w.From), clean(w.To))
}

// windowFact says where the window lies in the run.
func windowFact(s *report.Summary) Fact {
	return Fact{Name: "window", Value: windowWords(&s.Window.WindowEnds, s.Process.DurationNS) + "; peaks, counts and tables are the window's"}
}

func windowWords(w *report.WindowEnds, duration int64) string {
	end := func(name, otherwise string, ns int64) string {
		if name == "" {
			return otherwise
		}
		if _, err := time.ParseDuration(name); err == nil {
			return clean(name)
		}
		return fmt.Sprintf("%s (%s)", clean(name), moment(ns))
	}
	return fmt.Sprintf("%s to %s, %s of %s", end(w.From, "the beginning", w.FromNS), end(w.To, "the end", w.ToNS), Duration(w.ToNS-w.FromNS), Duration(duration))
}

// windowFlags are what asks for the same window again, with a blank behind them.
func windowFlags(s *report.Summary) (flags string) {
	if s.Window == nil {
		return ""
	}
	if s.Window.From != "" {
		flags = "--from " + shellWord(clean(s.Window.From)) + " "
	}
	if s.Window.To != "" {
		flags += "--to " + shellWord(clean(s.Window.To)) + " "
	}
	return flags
}

// filters are those that are on, without the window, which has a line of its own.
func filters(s *report.Summary) []string {
	if s.Window != nil && len(s.Filter) > 0 {
		return s.Filter[1:]
	}
	return s.Filter
}

// selection says what of the run is shown.
func (p *page) selection(s *report.Summary) {
	if s.Window != nil {
		p.styled(strong, "window", windowFact(s).Value)
	}
	if only := filters(s); len(only) > 0 {
		p.field("only", clean(strings.Join(only, ", ")))
	}
}

// briefWindowRows is how many keys the first screen shows of a window.
const briefWindowRows = 3

// shortWindow is the window's part of the first screen.
func (p *page) shortWindow(s *report.Summary) {
	if l := mainWindow(s); l != nil {
		p.windowTotals(s, l)
		if g := l.By(s.By[0]); g != nil {
			p.windowRows(s, l, g, p.rows(briefWindowRows))
		}
	}
}

// window says what became of the blocks.
func (p *page) window(s *report.Summary) {
	if s.Window == nil {
		return
	}
	for i := range s.Window.Levels {
		l := &s.Window.Levels[i]
		p.windowTotals(s, l)
		for _, by := range s.By {
			if g := l.By(by); g != nil && l.Level == s.MainLevel() {
				p.windowRows(s, l, g, p.o.rows())
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

func (p *page) windowTotals(s *report.Summary, l *report.WindowLevel) {
	title := "Driver memory"
	if l.Level == report.LevelFramework {
		title = "Blocks of " + frameworkName(s)
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
func (p *page) windowRows(s *report.Summary, l *report.WindowLevel, g *report.WindowGroup, limit int) {
	var rows [][]cell
	hidden := report.WindowRow{}
	count := 0
	for _, r := range g.Rows {
		if r.New.Bytes+r.Freed.Bytes == 0 {
			continue
		}
		if count++; count <= limit {
			rows = append(rows, windowCells(clean(keyTitle(r.Key, r.Label)), &r))
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
