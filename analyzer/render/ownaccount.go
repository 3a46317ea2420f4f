package render

import (
	"fmt"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// ownNames are what people call the frameworks that have accounts of their own.
var ownNames = map[string]string{"jax": "JAX"}

// ownAccounts is what frameworks say themselves of what lies in the pieces that they took from the driver.
func writeOwnAccounts(p *page, s *report.Summary) {
	for i := range s.OwnAccounts {
		a := &s.OwnAccounts[i]
		name := ownNames[a.Framework]
		if name == "" {
			name = visible.Text(a.Framework)
		}
		p.title(fmt.Sprintf("What %s itself had on %s, by its own count, at the highest of the moments at which it was asked: %s in %s", name, visible.Text(a.Device), Bytes(a.Bytes), plural(a.Count, "buffer", "buffers")))
		p.gap()
		values := make([]uint64, len(a.Sites))
		for i := range a.Sites {
			values[i] = a.Sites[i].Bytes
		}
		shares := tenths(values)
		var rows [][]cell
		for i, site := range a.Sites {
			if p.Rows > 0 && i == p.Rows {
				break
			}
			rows = append(rows, []cell{{text: visible.Text(site.Site)}, {Bytes(site.Bytes), strong}, {text: percent(shares[i])}, {text: Count(site.Count)}})
		}
		p.table([]column{{title: "site"}, {title: "bytes", right: true}, {title: "share", right: true}, {title: "buffers", right: true, optional: 1}}, rows)
		if left := len(a.Sites) - len(rows); left > 0 {
			p.line("  %s more, with -n 0", Count(uint64(left)))
		}
		p.gap()
	}
}
