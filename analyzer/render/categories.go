package render

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/analyzer/rules"
	"memtrace/internal/visible"
)

// categories prints what a set of rules makes of the memory: the categories, what the framework's allocator and other
// libraries hold beside them, what nobody tracks, and the largest entries of each category.
func writeCategories(p *page, s *report.Summary, v *report.Categories) {
	l := s.Ledger(v.By)
	if l == nil || s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.title(fmt.Sprintf("Where the memory was at %s, %s, by %s", ledgerMoment(s, l), moment(l.TimeNS), by(v)))
	p.gap()
	if v.Mode == rules.MultiMatch.String() {
		p.styled(alarm, "WARNING", fmt.Sprintf("a block counts in every category that it matches: the categories add up to %s, %s more than the %s that were tracked",
			Bytes(v.SumBytes), Bytes(v.ExcessBytes), Bytes(v.TrackedBytes)))
		p.gap()
	}
	writeCategoryTable(p, categoryOwners(p, s, v, l), l.WholeBytes, v)
	p.gap()
	for i := range v.Rows {
		writeEntries(p, &v.Rows[i])
	}
	for _, level := range []string{"framework", "driver"} {
		writeGroup(p, s, v.By, level)
	}
}

// by names a grouping and its rules.
func by(v *report.Categories) string {
	return visible.Text(fmt.Sprintf("%s (rules %s)", v.By, v.Rules))
}

// categoryOwners lists the categories, as many as a table has rows, Others in any case, and the ledger's rows that are
// no blocks.
func categoryOwners(p *page, s *report.Summary, v *report.Categories, l *report.Ledger) []owner {
	var named, rest []owner
	rows := rowsByKey(s.Group(v.By, v.Level))
	requested := v.ExcessBytes == 0 && showsRequests(p, s, l)
	for _, r := range v.Rows {
		o := owner{name: visible.Text(r.Key), bytes: r.Bytes, style: blocks}
		if v.ExcessBytes == 0 { // else rows of the group are other ones
			o.row = rows[r.Key]
		}
		if requested && r.Requested != nil {
			o.bytes -= r.Requested.RestBytes
		}
		if r.Key == rules.Others {
			o.name += " (no rule matches)"
			rest = append(rest, o)
		} else {
			named = append(named, o)
		}
	}
	named = limitOwners(p, named, "More categories", "by "+v.By)
	others := report.Ledger{By: l.By, Level: l.Level, Waiting: l.Waiting}
	if requested {
		others.Requested = l.Requested
	}
	others.Rows = slices.DeleteFunc(slices.Clone(l.Rows),
		func(r report.LedgerRow) bool { return r.Owner == report.OwnerBlocks })
	return slices.Concat(named, rest, ledgerOwners(p, s, &others))
}

// categoryTable prints shares of the whole, which is not the sum where blocks count more than once.
func writeCategoryTable(p *page, owners []owner, whole uint64, v *report.Categories) {
	_, largest := sharesOf(owners, func(o *owner) uint64 { return o.bytes })
	columns := []column{{title: "category"}, {title: "bytes", right: true}, {title: "share", right: true}, {optional: 3},
		{title: "at end", right: true, optional: 1}, {title: "allocs", right: true, optional: 2}}
	shares := categoryShares(p, owners, whole, v)
	var rows [][]cell
	for i, o := range owners {
		row := []cell{{o.name, plain}, {Bytes(o.bytes), strong}, {shares[i], plain}, {bar(o.bytes, largest, barWidth, p.ASCII), o.style}, {}, {}}
		if o.row != nil {
			row[4].text, row[5].text = Bytes(o.row.LiveBytes), Count(o.row.AllocCount)
		}
		rows = append(rows, row)
	}
	total := []cell{{"total", strong}, {Bytes(whole), strong}, {}, {}, {}, {}}
	if whole > 0 {
		total[2].text = "100.0%"
	}
	rows = append(rows, total)
	if v.Untrackable != nil {
		rows = append(rows, []cell{{"Untrackable", plain}, {SignedBytes(v.Untrackable.Bytes), strong}, {}, {}, {}, {}})
	}
	p.table(columns, rows)
	if v.Untrackable != nil {
		p.gap()
		p.item(untrackable(v.Untrackable))
	}
}

func categoryShares(p *page, owners []owner, whole uint64, v *report.Categories) []string {
	list := make([]string, len(owners))
	exact, _ := sharesOf(owners, func(o *owner) uint64 { return o.bytes })
	for i, o := range owners {
		if list[i] = percent(exact[i]); v.ExcessBytes > 0 {
			list[i] = percentOf(o.bytes, whole)
		}
	}
	return list
}

func untrackable(u *report.Untrackable) string {
	if u.From == report.UntrackableExpected {
		return fmt.Sprintf("Untrackable: %s were expected, %s of the driver's memory are tracked.", Bytes(u.ReportedBytes), Bytes(u.TrackedBytes))
	}
	return fmt.Sprintf("Untrackable: in the first sample of the ledger below, the device counts %s for this process, of which %s are tracked.",
		Bytes(u.ReportedBytes), Bytes(u.TrackedBytes))
}

// entries lists what a category is made of, with whole tags and sites.
func writeEntries(p *page, c *report.Category) {
	if c.Bytes == 0 || len(c.Entries) == 0 {
		return
	}
	p.title(fmt.Sprintf("%s: %s in %s", visible.Text(c.Key), Bytes(c.Bytes), plural(c.EntryCount, "tag and place", "tags and places")))
	p.gap()
	names := make([]string, len(c.Entries))
	for i, e := range c.Entries {
		name := visible.Text(e.Site)
		switch {
		case e.Tag != "" && name != "":
			name = visible.Text(e.Tag) + "  at " + name
		case e.Tag != "":
			name = visible.Text(e.Tag)
		case name == "":
			name = report.Untagged
		}
		names[i] = name
	}
	for i, name := range ClipApart(names, p.columns()-len("  1,023.9 MiB  100.0%  "), p.ASCII) {
		p.line("  %10s  %6s  %s", Bytes(c.Entries[i].Bytes), percentOf(c.Entries[i].Bytes, c.Bytes), name)
	}
	if more := c.EntryCount - uint64(len(c.Entries)); more > 0 {
		p.line("  %s, with -k 0", plural(more, "more", "more"))
	}
	p.gap()
}
