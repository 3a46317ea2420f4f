package render

import (
	"cmp"
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// owner is one printed row of a ledger.
type owner struct {
	name  string
	bytes uint64
	lower *uint64 // of the bytes, what is certain; nil where all is
	style style
	row   *report.Row // what else is known of it; nil for what has no row of its own
	key   string      // of the ledger's row
	sites []report.RowSite
	each  string // of several rows in one, how many there are and what each holds
}

// ledger prints where the memory was, and for groupings that were asked for, what each level's calls amount to.
func writeLedger(p *page, s *report.Summary, by string) {
	l := s.Ledger(by)
	if l == nil || s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.title(fmt.Sprintf("Where the memory was at %s, %s, by %s", ledgerMoment(s, l), moment(l.TimeNS), by))
	p.gap()
	if len(l.Rows) == 0 {
		p.line("  nothing was live")
	} else {
		writeOwnerTable(p, ledgerOwners(p, s, l), l.WholeBytes, s.Bounds)
		p.legend()
	}
	p.gap()
	if s.Asked {
		for _, level := range []string{"framework", "driver"} {
			writeGroup(p, s, by, level)
		}
	}
}

func ledgerMoment(s *report.Summary, l *report.Ledger) string {
	switch {
	case l.Moment != "peak":
		return visible.Text(l.Moment)
	case l.Level == "framework":
		return "the peak of " + FrameworkName(s.Versions)
	}
	return "the peak"
}

// owners turns a ledger's rows into printed ones, which still add up to the whole: blocks, what they have beyond the
// requests, the slack of the allocator, memory outside the framework.
func ledgerOwners(p *page, s *report.Summary, l *report.Ledger) []owner {
	var inside, between, beyond []owner
	requested := showsRequests(p, s, l)
	if requested {
		between = append(between, owner{name: "rounding and unsplit remainder of blocks", bytes: l.Requested.RestBytes, style: slack})
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
			beyond = append(beyond, owner{name: visible.Text(r.Key) + " (driver)", bytes: r.Bytes, lower: r.BytesLower, style: outside, row: ofLibraries[r.Key]})
		default:
			o := owner{name: visible.Text(cmp.Or(r.Label, r.Key)), bytes: r.Bytes, lower: r.BytesLower, style: blocks, row: ofLevel[r.Key], key: r.Key, sites: r.Sites}
			if requested {
				o.bytes, o.sites = o.bytes-r.Requested.RestBytes, withoutRest(o.sites)
			}
			inside = append(inside, o)
		}
	}
	inside = foldedOwners(p, l.By, inside)
	inside = limitOwners(p, inside, "Others", "by "+l.By)
	beyond = limitOwners(p, beyond, "Other libraries", "of the driver")
	return append(append(inside, between...), beyond...)
}

// tellsRequests reports whether a ledger's blocks are shown by what was requested: in what was asked for, where it is
// known and makes a difference.
func showsRequests(p *page, s *report.Summary, l *report.Ledger) bool {
	return (s.Asked || p.Details) && l.Requested != nil && l.Requested.RestBytes > 0
}

func withoutRest(sites []report.RowSite) []report.RowSite {
	list := slices.Clone(sites)
	for i := range list {
		list[i].Bytes -= list[i].Rest
	}
	return list
}

// slackOwners divides what the allocator holds in no block: what was given back and waits for other streams is not free
// yet.
func slackOwners(s *report.Summary, l *report.Ledger, r report.LedgerRow) []owner {
	list := []owner{{name: FrameworkName(s.Versions) + " reserved, unused (slack)", bytes: r.Bytes, lower: r.BytesLower, style: slack}}
	if l.Waiting > 0 && l.Waiting <= r.Bytes && r.BytesLower == nil {
		list[0].bytes -= l.Waiting
		waiting := owner{name: "given back, waiting for other streams", bytes: l.Waiting, style: slack}
		if list[0].bytes == 0 {
			return []owner{waiting}
		}
		list = append([]owner{waiting}, list...)
	}
	return list
}

// fold keeps as many owners as a table has rows and sums up the rest.
func limitOwners(p *page, list []owner, name, what string) []owner {
	return fewer(list, p.rowLimit(), func(hidden []owner) owner {
		rest := owner{name: fmt.Sprintf("%s (%d more %s)", name, len(hidden), what), style: hidden[0].style}
		for _, o := range hidden {
			rest.bytes += o.bytes
			rest.lower = sumOfLower(rest.lower, o.lower)
		}
		return rest
	})
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

// rowsByKey finds the rows of a group, which may be nil. A search for each row of a ledger took a minute for a hundred
// thousand tags.
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

func writeOwnerTable(p *page, owners []owner, whole uint64, b *report.Bounds) {
	shares, largest := sharesOf(owners, func(o *owner) uint64 { return o.bytes })
	columns := []column{{title: "owner"}, {title: "bytes", right: true}, {title: "share", right: true}, {optional: 3},
		{title: "at end", right: true, optional: 1}, {title: "allocs", right: true, optional: 2}}
	var rows [][]cell
	var each []string
	var lower *uint64
	for i, o := range owners {
		lower = sumOfLower(lower, o.lower)
		bytes := p.marked
		if o.style == slack { // what was reserved less what was in blocks
			bytes = func(lower *uint64, recorded uint64, b *report.Bounds) string {
				return p.loose(lower, b) + Bytes(recorded)
			}
		}
		row := []cell{{o.name, plain}, {bytes(o.lower, o.bytes, b), strong}, {percent(shares[i]), plain}, {bar(o.bytes, largest, barWidth, p.ASCII), o.style}}
		end, count := cell{}, cell{}
		if o.row != nil {
			end.text, count.text = p.marked(o.row.LiveBytesLower, o.row.LiveBytes, b), Count(o.row.AllocCount)
		}
		places := siteRows(p, &o, whole, len(columns))
		rows, each = append(rows, append(row, end, count)), append(each, o.each)
		rows, each = append(rows, places...), append(each, make([]string, len(places))...)
	}
	total := []cell{{"total", strong}, {p.marked(lower, whole, b), strong}, {"100.0%", plain}, {}, {}, {}}
	if whole == 0 {
		total[2].text = ""
	}
	columns, rows = eachColumn(columns, append(rows, total), append(each, ""))
	p.table(columns, rows)
}

// group prints one level's rows of a grouping: the share of that level's own peak, and what was asked for over the
// whole run.
func writeGroup(p *page, s *report.Summary, by, level string) {
	g := s.Group(by, level)
	if g == nil {
		return
	}
	name := level
	if level == "framework" {
		name = FrameworkName(s.Versions)
	}
	p.title(fmt.Sprintf("%s allocations by %s", upperFirst(name), by))
	p.gap()
	rows := fewer(foldedRows(p, g), p.rowLimit(), func(hidden []foldedRow) foldedRow {
		rest := foldedRow{Row: report.Row{Key: fmt.Sprintf("Others (%d more)", len(hidden))}}
		for _, r := range hidden {
			addRow(&rest.Row, &r.Row)
		}
		return rest
	})
	shares, _ := sharesOf(rows, func(r *foldedRow) uint64 { return r.PeakBytes })
	var cells [][]cell
	var each []string
	for i, r := range rows {
		each = append(each, r.each)
		cells = append(cells, []cell{{visible.Text(r.Title()), plain}, {p.marked(r.PeakBytesLower, r.PeakBytes, s.Bounds), strong}, {percent(shares[i]), plain}, {p.marked(r.LiveBytesLower, r.LiveBytes, s.Bounds), plain},
			{Count(r.AllocCount), plain}, {Bytes(r.AllocBytes), plain}, {requestedCell(r.RequestedAtPeak), plain}})
	}
	columns := []column{{title: by}, {title: "at its peak", right: true}, {title: "share", right: true}, {title: "at end", right: true, optional: 1},
		{title: "allocs", right: true, optional: 2}, {title: "allocated", right: true, optional: 3}, {title: "requested", right: true, optional: 4}}
	if !slices.ContainsFunc(g.Rows, func(r report.Row) bool { return r.RequestedAtPeak != nil }) {
		columns, cells = columns[:6], withoutLast(cells)
	}
	columns, cells = eachColumn(columns, cells, each)
	p.table(columns, cells)
	p.legend()
	p.gap()
}

// requestedCell is what was requested of the blocks at the peak: "" where it is not known.
func requestedCell(r *report.Requested) string {
	switch {
	case r == nil, r.Bytes == 0 && r.UnknownBytes > 0:
		return ""
	case r.UnknownBytes > 0:
		return "at least " + Bytes(r.Bytes)
	}
	return Bytes(r.Bytes)
}

func withoutLast(rows [][]cell) [][]cell {
	for i := range rows {
		rows[i] = rows[i][:len(rows[i])-1]
	}
	return rows
}
