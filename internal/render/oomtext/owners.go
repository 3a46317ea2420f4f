package oomtext

import (
	"cmp"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// writeOwners prints the owners of the device's memory: by tag if the program set any, and shorter by its places, if
// they are known; else by the most informative grouping.
func writeOwners(p *layout.Page, e *report.OOMEvent, framework string) {
	l := BestLedger(e)
	if l == nil || len(l.Rows) == 0 {
		return
	}
	writeLedger(p, e, l, framework, p.RowLimit())
	if places := ledgerBy(e, "site"); places != nil && places != l {
		writeLedger(p, e, places, framework, max(p.RowLimit()/2, 1))
	}
}

// writeLedger prints the table of one grouping, with a limit on the rows of blocks.
func writeLedger(p *layout.Page, e *report.OOMEvent, l *report.Ledger, framework string, limit int) {
	title := "Who filled " + layout.DeviceName(e.Device)
	if l.Rows[0].Owner == report.OwnerBlocks {
		title += ", by " + l.By
	}
	p.Title(title)
	p.Gap()
	rows := FoldOwners(l.By, l.Rows, limit)
	shares, largest := layout.SharesOf(rows, func(r *report.LedgerRow) uint64 { return r.Bytes })
	var cells [][]layout.Cell
	for i, row := range rows {
		cells = append(cells, []layout.Cell{{Text: OwnerName(&row, framework)},
			{Text: layout.Bytes(row.Bytes), Style: layout.Strong}, {Text: layout.Percent(shares[i])},
			{Text: layout.Bar(row.Bytes, largest, layout.BarWidth, p.ASCII), Style: OwnerStyle(row.Owner)}})
	}
	cells = append(cells, []layout.Cell{{Text: "in use", Style: layout.Strong},
		{Text: layout.Bytes(l.WholeBytes), Style: layout.Strong}, {Text: "100.0%"}, {}})
	p.Table([]layout.Column{{Title: "owner"}, {Title: "bytes", Right: true}, {Title: "share", Right: true},
		{Optional: 1}}, cells)
	p.Gap()
}

// FoldOwners joins the smallest blocks if there are more than limit and one; rows that are not blocks stay. Largest
// first, the joined row after the blocks.
func FoldOwners(by string, list []report.LedgerRow, limit int) []report.LedgerRow {
	n := 0
	for n < len(list) && list[n].Owner == report.OwnerBlocks {
		n++
	}
	rows := slices.Clone(list)
	rest := report.LedgerRow{Owner: report.OwnerBlocks}
	if n-1 > limit {
		for _, row := range rows[limit:n] {
			rest.Bytes += row.Bytes
		}
		rest.Key = layout.MoreRows(by, n-limit)
		rows = slices.Delete(rows, limit, n)
	}
	slices.SortStableFunc(rows, func(a, b report.LedgerRow) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if rest.Key != "" {
		rows = append(rows, rest)
	}
	return rows
}

// OwnerStyle is how an owner's name and bar are set off.
func OwnerStyle(owner string) layout.Style {
	switch owner {
	case report.OwnerBlocks:
		return layout.Blocks
	case report.OwnerSlack:
		return layout.Slack
	}
	return layout.Outside
}

// BestLedger picks the most informative grouping that the program's memory has names in.
func BestLedger(e *report.OOMEvent) *report.Ledger {
	for _, by := range []string{"tag", "site", "library"} {
		if l := ledgerBy(e, by); l != nil && slices.ContainsFunc(l.Rows, func(r report.LedgerRow) bool {
			return r.Owner == report.OwnerBlocks && r.Key != report.Untagged && r.Key != report.UnknownLibrary
		}) {
			return l
		}
	}
	return ledgerBy(e, "api")
}

func ledgerBy(e *report.OOMEvent, by string) *report.Ledger {
	for i := range e.Ledgers {
		if e.Ledgers[i].By == by {
			return &e.Ledgers[i]
		}
	}
	return nil
}

// OwnerName is the displayed name of a row's owner.
func OwnerName(r *report.LedgerRow, framework string) string {
	switch r.Owner {
	case report.OwnerBlocks:
		return sanitize.Text(r.Key)
	case report.OwnerSlack:
		return framework + " cache, idle"
	case report.OwnerOutside:
		return "outside of " + framework + ": " + sanitize.Text(r.Key)
	}
	return "(" + sanitize.Text(r.Key) + ")"
}
