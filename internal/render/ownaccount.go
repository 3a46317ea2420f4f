package render

import (
	"fmt"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// ownNames are the display names of the frameworks that have accounts of their own.
var ownNames = map[string]string{"jax": "JAX"}

// writeOwnAccounts prints the frameworks' own accounts of the memory that they took from the driver.
func writeOwnAccounts(p *layout.Page, s *report.Summary) {
	for i := range s.OwnAccounts {
		a := &s.OwnAccounts[i]
		name := ownNames[a.Framework]
		if name == "" {
			name = sanitize.Text(a.Framework)
		}
		p.Title(fmt.Sprintf(
			"What %s itself had on %s, by its own count, at the highest of the moments at which it was asked: %s in %s",
			name, sanitize.Text(a.Device), layout.Bytes(a.Bytes), layout.Plural(a.Count, "buffer", "buffers")))
		p.Gap()
		values := make([]uint64, len(a.Sites))
		for i := range a.Sites {
			values[i] = a.Sites[i].Bytes
		}
		shares := layout.Tenths(values)
		var rows [][]layout.Cell
		for i, site := range a.Sites {
			if p.Rows > 0 && i == p.Rows {
				break
			}
			rows = append(rows, []layout.Cell{{Text: sanitize.Text(site.Site)},
				{Text: layout.Bytes(site.Bytes), Style: layout.Strong}, {Text: layout.Percent(shares[i])},
				{Text: layout.Count(site.Count)}})
		}
		p.Table([]layout.Column{{Title: "site"}, {Title: "bytes", Right: true}, {Title: "share", Right: true},
			{Title: "buffers", Right: true, Optional: 1}}, rows)
		if left := len(a.Sites) - len(rows); left > 0 {
			p.Line("  %s more, with -n 0", layout.Count(uint64(left)))
		}
		p.Gap()
	}
}
