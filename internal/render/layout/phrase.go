package layout

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// WriteBeginning prints which process the report is about.
func WriteBeginning(p *Page, s *report.Summary) {
	name := "memtrace report"
	if p.Path != "" {
		name += "  " + sanitize.Text(p.Path)
	}
	p.Title(name)
	p.Gap()
	p.Field(Source(s.Process))
}

// WriteSelection prints which part of the run is shown.
func WriteSelection(p *Page, s *report.Summary) {
	if s.Window != nil {
		p.Styled(Strong, "window", WindowFact(s).Value)
	}
	if only := Filters(s); len(only) > 0 {
		p.Field("only", sanitize.Text(strings.Join(only, ", ")))
	}
}
