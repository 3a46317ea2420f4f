package render

import (
	"strings"

	"memtrace/analyzer/report"
)

// totals are the accounts side by side, where there is more than device memory: what is never added up stands under its
// own name.
func writeTotals(p *page, s *report.Summary) {
	if len(s.Other) == 0 {
		return
	}
	p.title("Separate totals, never added up")
	p.gap()
	columns := []column{{}, {title: "peak", right: true}, {title: "when", right: true, optional: 2}, {title: "at end", right: true},
		{title: "blocks left", right: true, optional: 1}, {title: "allocs", right: true, optional: 3}}
	p.rangedTable(columns, func(f figure) [][]cell { return totalRows(s, f) })
	p.gap()
}

func totalRows(s *report.Summary, f figure) (rows [][]cell) {
	for _, n := range totalNames {
		l := s.Other[n.account]
		if n.account == "driver" {
			l = s.Driver
		}
		if l.Empty() {
			continue
		}
		rows = append(rows, []cell{{text: n.name}, {f(l.PeakBytesLower, l.PeakBytes, s.Bounds), strong}, {text: moment(l.PeakTimeNS)}, {text: f(l.LiveBytesLower, l.LiveBytes, s.Bounds)},
			{text: Count(l.LiveCount())}, {text: Count(l.AllocCount)}})
	}
	return rows
}

// sizes compares, for every device, what was asked for with what it takes; unless groupings were asked for, only where
// that is something else.
func writeSizes(p *page, s *report.Summary) {
	var rows [][]cell
	var pools, graphs bool
	for _, d := range s.Devices {
		pools = pools || d.Sizes.AtPeak.PoolReservedBytes > 0 || d.Sizes.AtEnd.PoolReservedBytes > 0
		graphs = graphs || d.Sizes.AtPeak.GraphPoolBytes > 0 || d.Sizes.AtEnd.GraphPoolBytes > 0
	}
	for _, d := range s.Devices {
		v, name := d.Sizes, deviceName(d.Index)
		if v == (report.DeviceSizes{}) || !s.Asked && !takesMore(v.AtPeak) && !takesMore(v.AtEnd) {
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
	columns := []column{{}, {title: "requested", right: true}, {title: "in 512 B units", right: true, optional: 3}, {title: "in 2 MiB pages", right: true}}
	if pools {
		columns = append(columns, column{title: "pools idle", right: true, optional: 1})
	}
	if graphs {
		columns = append(columns, column{title: "graph pool", right: true, optional: 2})
	}
	title := "Requested and actual size of device memory, pages estimated"
	if s.Bounds != nil {
		title += ", as recorded"
	}
	p.title(title)
	p.gap()
	p.table(columns, rows)
	p.gap()
}

// takesMore reports whether memory takes noticeably more than was asked for: one percent.
func takesMore(v report.SizesAt) bool {
	return v.PoolIdleBytes > 0 || v.GraphPoolBytes > 0 || max(v.RoundedBytes, v.PageBytes) > v.RequestedBytes+v.RequestedBytes/100
}

func sizesRow(name string, v report.SizesAt, pools, graphs bool) []cell {
	row := []cell{{text: name}, {text: Bytes(v.RequestedBytes)}, {text: Bytes(v.RoundedBytes)}, {text: Bytes(v.PageBytes)}}
	if pools {
		row = append(row, cell{text: Bytes(v.PoolIdleBytes)})
	}
	if graphs {
		row = append(row, cell{text: Bytes(v.GraphPoolBytes)})
	}
	return row
}

// objectNames are the kinds of objects that a report speaks of, in its order.
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

// objectsLine counts what owns memory besides blocks. One context and its code are nothing to speak of, unless
// groupings were asked for.
func objectsLine(s *report.Summary) string {
	var parts []string
	for _, n := range objectNames {
		c := s.Objects[n.kind]
		usual := n.kind == "module" || n.kind == "library" || n.kind == "context" && c.CreatedCount <= 1
		if c == (report.ObjectCount{}) || usual && c.FailedCount == 0 && !s.Asked {
			continue
		}
		text := plural(c.CreatedCount, n.one, n.many)
		switch {
		case c.CreatedCount == 0 && c.DestroyedCount > 0: // their beginning is not recorded
			text = plural(c.DestroyedCount, n.one, n.many) + " (all ended)"
		case c.CreatedCount == 0:
			text = "no " + n.one
		case c.LiveCount != c.CreatedCount:
			text += " (" + Count(c.LiveCount) + " at the end)"
		}
		if c.FailedCount > 0 {
			text += " (" + Count(c.FailedCount) + " refused)"
		}
		parts = append(parts, text)
	}
	if s.Launches > 0 {
		parts = append(parts, plural(s.Launches, "graph launch", "graph launches"))
	}
	return strings.Join(parts, ", ")
}

// lost says what lost records mean for the figures, and what can be done about it.
func writeLost(p *page, s *report.Summary) {
	if s.Bounds != nil {
		p.styled(alarm, "lost", lostWords(s.Bounds))
		p.gap()
	}
}
