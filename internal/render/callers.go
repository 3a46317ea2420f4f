package render

import (
	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// callerRows are the lines that called the place that holds most, or the kernels that it was compiled to; nil where it
// is divided in another way. What is left out is the last row.
func callerRows(d *report.Division, limit int) (title string, rows []owner) {
	if d == nil || !d.User {
		return "", nil
	}
	switch {
	case d.By == report.ByCaller:
		title = "Callers of "
	case d.Compiled():
		title = "Kernels of "
	default:
		return "", nil
	}
	for _, row := range d.Rows {
		rows = append(rows, owner{name: sanitize.Text(row.Title()), bytes: row.Bytes, style: layout.Blocks})
	}
	if d.RestCount > 0 {
		rows = append(rows, owner{name: layout.Plural(d.RestCount, "more line", "more lines"), bytes: d.RestBytes,
			style: layout.Blocks})
	}
	return title + sanitize.Text(d.Site), coverOwners("site", rows, limit, 0)
}

// shortCallers prints the callers of the place that holds most.
func (p *screen) shortCallers(d *report.Division, whole uint64) {
	if title, rows := callerRows(d, p.rows(briefCallers)); len(rows) > 1 {
		p.shortTable(title, rows, whole, nil)
	}
}

// writeCallers is the same at the requested moment.
func writeCallers(p *layout.Page, s *report.Summary) {
	if title, rows := callerRows(s.Division, p.RowLimit()); len(rows) > 1 {
		part := screen{Page: p}
		part.shortTable(title, rows, s.Division.WholeBytes, nil)
	}
}
