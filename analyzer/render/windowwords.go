package render

import (
	"fmt"
	"time"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// windowPhrase is the window in a sentence, "" for a whole run.
func windowPhrase(w *report.Window) string {
	switch {
	case w == nil:
		return ""
	case w.From == "":
		return " before " + visible.Text(w.To)
	case w.To == "":
		return " after " + visible.Text(w.From)
	}
	return fmt.Sprintf(" between %s and %s", visible.Text(w.From), visible.Text(w.To))
}

// windowFact says where the window lies in the run.
func windowFact(s *report.Summary) layout.Fact {
	return layout.Fact{Name: "window", Value: windowWords(&s.Window.WindowEnds, s.Process.DurationNS) + "; peaks, counts and tables are the window's"}
}

func windowWords(w *report.WindowEnds, duration int64) string {
	end := func(name, otherwise string, ns int64) string {
		if name == "" {
			return otherwise
		}
		if _, err := time.ParseDuration(name); err == nil {
			return visible.Text(name)
		}
		return fmt.Sprintf("%s (%s)", visible.Text(name), layout.Moment(ns))
	}
	return fmt.Sprintf("%s to %s, %s of %s", end(w.From, "the beginning", w.FromNS), end(w.To, "the end", w.ToNS), layout.Duration(w.ToNS-w.FromNS), layout.Duration(duration))
}

// windowFlags are what asks for the same window again, with a blank behind them.
func windowFlags(s *report.Summary) (flags string) {
	if s.Window == nil {
		return ""
	}
	if s.Window.From != "" {
		flags = "--from " + layout.ShellWord(s.Window.From) + " "
	}
	if s.Window.To != "" {
		flags += "--to " + layout.ShellWord(s.Window.To) + " "
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
