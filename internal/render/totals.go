package render

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// writeTotals prints the accounts, if there are others than device memory: figures that must not be added up have
// separate names.
func writeTotals(p *layout.Page, s *report.Summary) {
	if len(s.Other) == 0 {
		return
	}
	p.Title("Separate totals, never added up")
	p.Gap()
	columns := []layout.Column{{}, {Title: "peak", Right: true}, {Title: "when", Right: true, Optional: 2},
		{Title: "at end", Right: true},
		{Title: "blocks left", Right: true, Optional: 1}, {Title: "allocs", Right: true, Optional: 3}}
	p.RangedTable(columns, func(f layout.Figure) [][]layout.Cell { return totalRows(s, f) })
	p.Gap()
}

func totalRows(s *report.Summary, f layout.Figure) (rows [][]layout.Cell) {
	for _, n := range layout.Accounts() {
		l := s.Other[n.Key]
		if n.Key == "driver" {
			l = s.Driver
		}
		if l.Empty() {
			continue
		}
		rows = append(rows, []layout.Cell{{Text: n.Name}, {Text: f(l.PeakBytesLower, l.PeakBytes, s.Bounds),
			Style: layout.Strong}, {Text: layout.Moment(l.PeakTimeNS)},
			{Text: f(l.LiveBytesLower, l.LiveBytes, s.Bounds)},
			{Text: layout.Count(l.LiveCount())}, {Text: layout.Count(l.AllocCount)}})
	}
	return rows
}

// writeSizes compares, for every device, the requested bytes with the allocated ones; unless groupings were requested,
// only if they differ.
func writeSizes(p *layout.Page, s *report.Summary) {
	var rows [][]layout.Cell
	var pools, graphs bool
	for _, d := range s.Devices {
		pools = pools || d.Sizes.AtPeak.PoolReservedBytes > 0 || d.Sizes.AtEnd.PoolReservedBytes > 0
		graphs = graphs || d.Sizes.AtPeak.GraphPoolBytes > 0 || d.Sizes.AtEnd.GraphPoolBytes > 0
	}
	for _, d := range s.Devices {
		v, name := d.Sizes, layout.DeviceName(d.Index)
		if v == (report.DeviceSizes{}) || !s.Asked && !exceedsRequest(v.AtPeak) && !exceedsRequest(v.AtEnd) {
			continue
		}
		rows = append(rows, sizesRow(name+" at its peak", v.AtPeak, pools, graphs))
		if v.AtEnd != v.AtPeak {
			rows = append(rows, sizesRow(name+" at the end", v.AtEnd, pools, graphs))
		}
	}
	if len(rows) == 0 {
		return
	}
	columns := []layout.Column{{}, {Title: "requested", Right: true}, {Title: "in 512 B units", Right: true,
		Optional: 3}, {Title: "in 2 MiB pages", Right: true}}
	if pools {
		columns = append(columns, layout.Column{Title: "pools idle", Right: true, Optional: 1})
	}
	if graphs {
		columns = append(columns, layout.Column{Title: "graph pool", Right: true, Optional: 2})
	}
	title := "Requested and actual size of device memory, pages estimated"
	if s.Bounds != nil {
		title += ", as recorded"
	}
	p.Title(title)
	p.Gap()
	p.Table(columns, rows)
	p.Gap()
}

// exceedsRequest reports whether memory takes noticeably more than requested: one percent.
func exceedsRequest(v report.SizesAt) bool {
	return v.PoolIdleBytes > 0 || v.GraphPoolBytes > 0 || max(v.RoundedBytes, v.PageBytes) > v.RequestedBytes+
		v.RequestedBytes/100
}

func sizesRow(name string, v report.SizesAt, pools, graphs bool) []layout.Cell {
	row := []layout.Cell{{Text: name}, {Text: layout.Bytes(v.RequestedBytes)}, {Text: layout.Bytes(v.RoundedBytes)},
		{Text: layout.Bytes(v.PageBytes)}}
	if pools {
		row = append(row, layout.Cell{Text: layout.Bytes(v.PoolIdleBytes)})
	}
	if graphs {
		row = append(row, layout.Cell{Text: layout.Bytes(v.GraphPoolBytes)})
	}
	return row
}

// objectNames are the kinds of objects in a report, in its order.
var objectNames = []struct{ kind, one, many string }{
	{"context", "context", "contexts"},
	{"green", "green context", "green contexts"},
	{"pool", "memory pool", "memory pools"},
	{"module", "module", "modules"},
	{"library", "library", "libraries"},
	{"graph", "graph", "graphs"},
	{"exec", "executable graph", "executable graphs"},
	{"external", "external memory object", "external memory objects"},
}

// objectsLine counts what owns memory besides blocks. One context and its code are omitted, unless groupings were
// requested.
func objectsLine(s *report.Summary) string {
	var parts []string
	for _, n := range objectNames {
		c := s.Objects[n.kind]
		usual := n.kind == "module" || n.kind == "library" || n.kind == "context" && c.CreatedCount <= 1
		if c == (report.ObjectCount{}) || usual && c.FailedCount == 0 && !s.Asked {
			continue
		}
		text := layout.Plural(c.CreatedCount, n.one, n.many)
		switch {
		case c.CreatedCount == 0 && c.DestroyedCount > 0: // their beginning is not recorded
			text = layout.Plural(c.DestroyedCount, n.one, n.many) + " (all ended)"
		case c.CreatedCount == 0:
			text = "no " + n.one
		case c.LiveCount != c.CreatedCount:
			text += " (" + layout.Count(c.LiveCount) + " at the end)"
		}
		if c.FailedCount > 0 {
			text += " (" + layout.Count(c.FailedCount) + " refused)"
		}
		parts = append(parts, text)
	}
	if s.Launches > 0 {
		parts = append(parts, layout.Plural(s.Launches, "graph launch", "graph launches"))
	}
	return strings.Join(parts, ", ")
}

// writeLost prints the effect of lost records on the figures, and the remedy.
func writeLost(p *layout.Page, s *report.Summary) {
	if s.Bounds != nil {
		p.Styled(layout.Alarm, "lost", layout.Lost(s.Bounds))
		p.Gap()
	}
}
