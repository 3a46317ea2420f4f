package render

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
	"memtrace/internal/sanitize"
)

// writeCategories prints the memory by the categories of a set of rules: the categories, the memory of the framework's
// allocator and other libraries, untracked memory, and the largest entries of each category.
func writeCategories(p *layout.Page, s *report.Summary, v *report.Categories) {
	l := s.Ledger(v.By)
	if l == nil || s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.Title(fmt.Sprintf("Where the memory was at %s, %s, by %s", ledgerMoment(s, l), layout.Moment(l.TimeNS), by(v)))
	p.Gap()
	if v.Mode == rules.MultiMatch.String() {
		p.Styled(layout.Alarm, "WARNING",
			fmt.Sprintf(
				"a block counts in every category that it matches: the categories add up to %s, %s more than the %s that were tracked",
				layout.Bytes(v.SumBytes), layout.Bytes(v.ExcessBytes), layout.Bytes(v.TrackedBytes)))
		p.Gap()
	}
	writeCategoryTable(p, categoryOwners(p, s, v, l), l.WholeBytes, v)
	p.Gap()
	for i := range v.Rows {
		writeEntries(p, &v.Rows[i])
	}
	for _, level := range []string{"framework", "driver"} {
		writeGroup(p, s, v.By, level)
	}
}

// by names a grouping and its rules.
func by(v *report.Categories) string {
	return sanitize.Text(fmt.Sprintf("%s (rules %s)", v.By, v.Rules))
}

// categoryOwners lists the categories, as many as a table has rows, Others in any case, and the ledger's rows that are
// not blocks.
func categoryOwners(p *layout.Page, s *report.Summary, v *report.Categories, l *report.Ledger) []owner {
	var named, rest []owner
	rows := rowsByKey(s.Group(v.By, v.Level))
	requested := v.ExcessBytes == 0 && showsRequests(p, s, l)
	for _, r := range v.Rows {
		o := owner{name: sanitize.Text(layout.CategoryWord(r.Key)), bytes: r.Bytes, style: layout.Blocks}
		if v.ExcessBytes == 0 { // otherwise the group has other rows
			o.row = rows[r.Key]
		}
		if requested && r.Requested != nil {
			o.bytes -= r.Requested.RestBytes
		}
		if r.Key == rules.Others {
			rest = append(rest, o)
		} else {
			named = append(named, o)
		}
	}
	named = limitOwners(p, "category", named)
	others := report.Ledger{By: l.By, Level: l.Level, Waiting: l.Waiting}
	if requested {
		others.Requested = l.Requested
	}
	others.Rows = slices.DeleteFunc(slices.Clone(l.Rows),
		func(r report.LedgerRow) bool { return r.Owner == report.OwnerBlocks })
	return slices.Concat(named, rest, ledgerOwners(p, s, &others, nil))
}

// writeCategoryTable prints shares of the whole, which is not the sum where blocks count more than once.
func writeCategoryTable(p *layout.Page, owners []owner, whole uint64, v *report.Categories) {
	_, largest := layout.SharesOf(owners, func(o *owner) uint64 { return o.bytes })
	columns := []layout.Column{{Title: "category"}, {Title: "bytes", Right: true}, {Title: "of all", Right: true},
		{Optional: 3},
		{Title: "at end", Right: true, Optional: 1}, {Title: "allocs", Right: true, Optional: 2}}
	shares := categoryShares(p, owners, whole, v)
	var rows [][]layout.Cell
	for i, o := range owners {
		row := []layout.Cell{{Text: o.name}, {Text: layout.Bytes(o.bytes), Style: layout.Strong}, {Text: shares[i]},
			{Text: layout.Bar(o.bytes, largest, layout.BarWidth, p.ASCII), Style: o.style}, {}, {}}
		if o.row != nil {
			row[4].Text, row[5].Text = layout.Bytes(o.row.LiveBytes), layout.Count(o.row.AllocCount)
		}
		rows = append(rows, row)
	}
	total := []layout.Cell{{Text: "total", Style: layout.Strong}, {Text: layout.Bytes(whole), Style: layout.Strong}, {},
		{}, {}, {}}
	if whole > 0 {
		total[2].Text = "100.0%"
	}
	rows = append(rows, total)
	if v.Untrackable != nil {
		rows = append(rows, []layout.Cell{{Text: "Untrackable"}, {Text: layout.SignedBytes(v.Untrackable.Bytes),
			Style: layout.Strong}, {}, {}, {}, {}})
	}
	p.Table(columns, rows)
	if v.Untrackable != nil {
		p.Gap()
		p.Item(untrackable(v.Untrackable))
	}
}

func categoryShares(p *layout.Page, owners []owner, whole uint64, v *report.Categories) []string {
	list := make([]string, len(owners))
	exact, _ := layout.SharesOf(owners, func(o *owner) uint64 { return o.bytes })
	for i, o := range owners {
		if list[i] = layout.Percent(exact[i]); v.ExcessBytes > 0 {
			list[i] = layout.PercentOf(o.bytes, whole)
		}
	}
	return list
}

func untrackable(u *report.Untrackable) string {
	if u.From == report.UntrackableExpected {
		return fmt.Sprintf("Untrackable: %s were expected, %s of the driver's memory are tracked.",
			layout.Bytes(u.ReportedBytes), layout.Bytes(u.TrackedBytes))
	}
	return fmt.Sprintf(
		"Untrackable: in the first sample of the ledger below, the device counts %s for this process, of which %s are tracked.",
		layout.Bytes(u.ReportedBytes), layout.Bytes(u.TrackedBytes))
}

// writeEntries lists the entries of a category, with whole tags and sites.
func writeEntries(p *layout.Page, c *report.Category) {
	if c.Bytes == 0 || len(c.Entries) == 0 {
		return
	}
	p.Title(fmt.Sprintf("%s: %s in %s", sanitize.Text(layout.CategoryWord(c.Key)), layout.Bytes(c.Bytes),
		layout.Plural(c.EntryCount, "tag and place", "tags and places")))
	p.Gap()
	names := make([]string, len(c.Entries))
	for i, e := range c.Entries {
		name := sanitize.Text(e.Site)
		switch {
		case e.Tag != "" && name != "":
			name = sanitize.Text(e.Tag) + "  at " + name
		case e.Tag != "":
			name = sanitize.Text(e.Tag)
		case name == "":
			name = report.Untagged
		}
		names[i] = name
	}
	for i, name := range layout.ClipApart(names, p.Columns()-len("  1,023.9 MiB  100.0%  "), p.ASCII) {
		p.Line("  %10s  %6s  %s", layout.Bytes(c.Entries[i].Bytes), layout.PercentOf(c.Entries[i].Bytes, c.Bytes), name)
	}
	if more := c.EntryCount - uint64(len(c.Entries)); more > 0 {
		p.Line("  %s, with -k 0", layout.Plural(more, "more", "more"))
	}
	p.Gap()
}
