// Package phrase has the text shared by several reports: names of devices, frameworks, processes and windows, and the
// lines on health, growth and iterations. It may import layout, the report's types and the names of rules; it prints no
// tables and does not select the content of a report.
package phrase

import (
	"strings"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// WriteBeginning prints which process the report is about.
func WriteBeginning(p *layout.Page, s *report.Summary) {
	name := "memtrace report"
	if p.Path != "" {
		name += "  " + sanitize.Text(p.Path)
	}
	p.Title(name)
	p.Gap()
	p.Field(Source(s.Process))
}

// WriteSelection prints which part of the run is shown.
func WriteSelection(p *layout.Page, s *report.Summary) {
	if s.Window != nil {
		p.Styled(layout.Strong, "window", WindowFact(s).Value)
	}
	if only := Filters(s); len(only) > 0 {
		p.Field("only", sanitize.Text(strings.Join(only, ", ")))
	}
}
