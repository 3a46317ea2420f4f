package layout

import (
	"fmt"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// DuringWindow is the window in a sentence, "" for a whole run.
func DuringWindow(w *report.Window) string {
	switch {
	case w == nil:
		return ""
	case w.From == "":
		return " before " + sanitize.Text(w.To)
	case w.To == "":
		return " after " + sanitize.Text(w.From)
	}
	return fmt.Sprintf(" between %s and %s", sanitize.Text(w.From), sanitize.Text(w.To))
}

// WindowFact describes the position of the window in the run.
func WindowFact(s *report.Summary) Fact {
	return Fact{Name: "window", Value: Window(&s.Window.WindowEnds, s.Process.DurationNS) +
		"; peaks, counts and tables are the window's"}
}

// Window describes the ends of a window, and its part of the run.
func Window(w *report.WindowEnds, duration int64) string {
	end := func(name, otherwise string, ns int64) string {
		if name == "" {
			return otherwise
		}
		if _, err := time.ParseDuration(name); err == nil {
			return sanitize.Text(name)
		}
		return fmt.Sprintf("%s (%s)", sanitize.Text(name), Moment(ns))
	}
	return fmt.Sprintf("%s to %s, %s of %s", end(w.From, "the beginning", w.FromNS), end(w.To, "the end", w.ToNS),
		Duration(w.ToNS-w.FromNS), Duration(duration))
}

// WindowFlags are the flags that select the same window again, followed by a blank.
func WindowFlags(s *report.Summary) (flags string) {
	if s.Window == nil {
		return ""
	}
	if s.Window.From != "" {
		flags = "--from " + ShellWord(s.Window.From) + " "
	}
	if s.Window.To != "" {
		flags += "--to " + ShellWord(s.Window.To) + " "
	}
	return flags
}

// Filters are the active ones, without the window, which has a separate line.
func Filters(s *report.Summary) []string {
	if s.Window != nil && len(s.Filter) > 0 {
		return s.Filter[1:]
	}
	return s.Filter
}
