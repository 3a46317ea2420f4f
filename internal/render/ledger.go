package render

import (
	"cmp"
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// owner is one printed row of a ledger.
type owner struct {
	name  string
	bytes uint64
	lower *uint64 // the certain part of the bytes; nil if all is
	style layout.Style
	row   *report.Row // further data; nil if the memory has no row
	key   string      // of the ledger's row
	sites []report.RowSite
	each  string // of several rows in one, how many there are and what each holds
	rest  bool   // the sum of the rows that the table does not show
}

// writeLedger prints the memory by owner, and for requested groupings the totals of each level's calls.
func writeLedger(p *layout.Page, s *report.Summary, by string) {
	l := s.Ledger(by)
	if l == nil || s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.Title(fmt.Sprintf("Where the memory was at %s, %s, by %s", ledgerMoment(s, l), layout.Moment(l.TimeNS), by))
	p.Gap()
	if len(l.Rows) == 0 {
		p.Line("  nothing was live")
	} else {
		writeOwnerTable(p, ledgerOwners(p, s, l, nil), l.WholeBytes, s.Bounds)
		p.Legend()
	}
	p.Gap()
	if s.Asked {
		for _, level := range []string{"framework", "driver"} {
			writeGroup(p, s, by, level)
		}
	}
}

func ledgerMoment(s *report.Summary, l *report.Ledger) string {
	switch {
	case l.Moment != "peak":
		return sanitize.Text(l.Moment)
	case l.Level == "framework":
		return "the peak of " + layout.FrameworkName(s.Versions)
	}
	return "the peak"
}

// owners turns a ledger's rows into printed ones, which still add up to the whole: blocks, what they have beyond the
// requests, the slack of the allocator, memory outside the framework. shorten bounds the blocks' rows; nil: the largest
// ones are shown.
func ledgerOwners(p *layout.Page, s *report.Summary, l *report.Ledger, shorten func([]owner) []owner) []owner {
	var inside, between, beyond []owner
	requested := showsRequests(p, s, l)
	if requested {
		between = append(between, owner{name: "rounding and unsplit remainder of blocks", bytes: l.Requested.RestBytes,
			style: layout.Slack})
	}
	ofLibraries, ofLevel := rowsByKey(s.Group("library", "driver")), rowsByKey(s.Group(l.By, l.Level))
	for _, r := range l.Rows {
		if l.BeforeLoss {
			r.BytesLower = nil
		}
		switch r.Owner {
		case report.OwnerSlack:
			between = append(between, slackOwners(s, l, r)...)
		case report.OwnerOutside:
			beyond = append(beyond, owner{name: sanitize.Text(r.Key) + " (driver)", bytes: r.Bytes, lower: r.BytesLower,
				style: layout.Outside, row: ofLibraries[r.Key]})
		default:
			o := owner{name: sanitize.Text(layout.KeyName(l.By, cmp.Or(r.Label, r.Key))), bytes: r.Bytes,
				lower: r.BytesLower, style: layout.Blocks, row: ofLevel[r.Key], key: r.Key, sites: r.Sites}
			if requested {
				o.bytes, o.sites = o.bytes-r.Requested.RestBytes, withoutRest(o.sites)
			}
			inside = append(inside, o)
		}
	}
	inside = foldedOwners(p, l.By, inside)
	if shorten == nil {
		shorten = func(list []owner) []owner { return limitOwners(p, l.By, list) }
	}
	inside, beyond = shorten(inside), limitOwners(p, "library", beyond)
	return append(append(inside, between...), beyond...)
}

// showsRequests reports whether a ledger's blocks are shown by requested bytes: if they are known and make a
// difference.
func showsRequests(p *layout.Page, s *report.Summary, l *report.Ledger) bool {
	return (s.Asked || p.Details) && l.Requested != nil && l.Requested.RestBytes > 0
}

func withoutRest(sites []report.RowSite) []report.RowSite {
	list := slices.Clone(sites)
	for i := range list {
		list[i].Bytes -= list[i].Rest
	}
	return list
}

// slackOwners divides the allocator's memory outside of blocks: freed blocks that wait for other streams are not free
// yet.
func slackOwners(s *report.Summary, l *report.Ledger, r report.LedgerRow) []owner {
	list := []owner{{name: layout.FrameworkName(s.Versions) + " reserved, unused (slack)", bytes: r.Bytes,
		lower: r.BytesLower, style: layout.Slack}}
	if l.Waiting > 0 && l.Waiting <= r.Bytes && r.BytesLower == nil {
		list[0].bytes -= l.Waiting
		waiting := owner{name: "given back, waiting for other streams", bytes: l.Waiting, style: layout.Slack}
		if list[0].bytes == 0 {
			return []owner{waiting}
		}
		list = append([]owner{waiting}, list...)
	}
	return list
}

// limitOwners keeps as many owners as a table has rows and sums up the rest.
func limitOwners(p *layout.Page, by string, list []owner) []owner {
	return layout.Fewer(list, p.RowLimit(), func(hidden []owner) owner { return foldShort(by, hidden) })
}

// sumOfLower adds up lower bounds, which all rows of a table have or none.
func sumOfLower(sum, lower *uint64) *uint64 {
	switch {
	case lower == nil:
		return sum
	case sum == nil:
		return new(*lower)
	}
	return new(*sum + *lower)
}

// rowsByKey indexes the rows of a group, which may be nil. A linear search for each row of a ledger took a minute for a
// hundred thousand tags.
func rowsByKey(g *report.Group) map[string]*report.Row {
	if g == nil {
		return nil
	}
	rows := make(map[string]*report.Row, len(g.Rows))
	for i := range g.Rows {
		if rows[g.Rows[i].Key] == nil {
			rows[g.Rows[i].Key] = &g.Rows[i]
		}
	}
	return rows
}

func writeOwnerTable(p *layout.Page, owners []owner, whole uint64, b *report.Bounds) {
	shares, largest := layout.SharesOf(owners, func(o *owner) uint64 { return o.bytes })
	columns := []layout.Column{{Title: "owner"}, {Title: "bytes", Right: true}, {Title: "of all", Right: true},
		{Optional: 3},
		{Title: "at end", Right: true, Optional: 1}, {Title: "allocs", Right: true, Optional: 2}}
	var rows [][]layout.Cell
	var each []string
	var lower *uint64
	for i, o := range owners {
		lower = sumOfLower(lower, o.lower)
		bytes := p.Marked
		if o.style == layout.Slack { // what was reserved less what was in blocks
			bytes = func(lower *uint64, recorded uint64, b *report.Bounds) string {
				return p.Loose(lower, b) + layout.Bytes(recorded)
			}
		}
		row := []layout.Cell{{Text: o.name}, {Text: bytes(o.lower, o.bytes, b), Style: layout.Strong},
			{Text: layout.Percent(shares[i])}, {Text: layout.Bar(o.bytes, largest, layout.BarWidth, p.ASCII),
				Style: o.style}}
		end, count := layout.Cell{}, layout.Cell{}
		if o.row != nil {
			end.Text, count.Text = p.Marked(o.row.LiveBytesLower, o.row.LiveBytes, b), layout.Count(o.row.AllocCount)
		}
		places := siteRows(p, &o, whole, len(columns))
		rows, each = append(rows, append(row, end, count)), append(each, o.each)
		rows, each = append(rows, places...), append(each, make([]string, len(places))...)
	}
	total := []layout.Cell{{Text: "total", Style: layout.Strong},
		{Text: p.Marked(lower, whole, b), Style: layout.Strong}, {Text: "100.0%"}, {}, {}, {}}
	if whole == 0 {
		total[2].Text = ""
	}
	columns, rows = layout.EachColumn(columns, append(rows, total), append(each, ""))
	p.Table(columns, rows)
}

// writeGroup prints one level's rows of a grouping: the share of that level's own peak, and the bytes allocated over
// the whole run.
func writeGroup(p *layout.Page, s *report.Summary, by, level string) {
	g := s.Group(by, level)
	if g == nil {
		return
	}
	name := level
	if level == "framework" {
		name = layout.FrameworkName(s.Versions)
	}
	p.Title(fmt.Sprintf("%s allocations by %s", layout.UpperFirst(name), by))
	p.Gap()
	rows := layout.Fewer(foldedRows(p, g), p.RowLimit(), func(hidden []foldedRow) foldedRow {
		rest := foldedRow{Row: report.Row{Key: layout.MoreRows(by, len(hidden))}}
		for _, r := range hidden {
			addRow(&rest.Row, &r.Row)
		}
		return rest
	})
	shares, _ := layout.SharesOf(rows, func(r *foldedRow) uint64 { return r.PeakBytes })
	var cells [][]layout.Cell
	var each []string
	for i, r := range rows {
		each = append(each, r.each)
		cells = append(cells, []layout.Cell{{Text: sanitize.Text(layout.KeyName(by, r.Title()))},
			{Text: p.Marked(r.PeakBytesLower, r.PeakBytes, s.Bounds), Style: layout.Strong},
			{Text: layout.Percent(shares[i])}, {Text: p.Marked(r.LiveBytesLower, r.LiveBytes, s.Bounds)},
			{Text: layout.Count(r.AllocCount)}, {Text: layout.Bytes(r.AllocBytes)},
			{Text: requestedCell(r.RequestedAtPeak)}})
	}
	columns := []layout.Column{{Title: by}, {Title: "at its peak", Right: true}, {Title: "share", Right: true},
		{Title: "at end", Right: true, Optional: 1},
		{Title: "allocs", Right: true, Optional: 2}, {Title: "allocated", Right: true, Optional: 3},
		{Title: "requested", Right: true, Optional: 4}}
	if !slices.ContainsFunc(g.Rows, func(r report.Row) bool { return r.RequestedAtPeak != nil }) {
		columns, cells = columns[:6], withoutLast(cells)
	}
	columns, cells = layout.EachColumn(columns, cells, each)
	p.Table(columns, cells)
	p.Legend()
	p.Gap()
}

// requestedCell is the requested bytes of the blocks at the peak: "" if unknown.
func requestedCell(r *report.Requested) string {
	switch {
	case r == nil, r.Bytes == 0 && r.UnknownBytes > 0:
		return ""
	case r.UnknownBytes > 0:
		return "at least " + layout.Bytes(r.Bytes)
	}
	return layout.Bytes(r.Bytes)
}

func withoutLast(rows [][]layout.Cell) [][]layout.Cell {
	for i := range rows {
		rows[i] = rows[i][:len(rows[i])-1]
	}
	return rows
}
