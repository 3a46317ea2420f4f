package render

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/fold"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// foldedOwners joins owners that are repeated modules or their parts. The list is sorted, most first, and so is the
// result.
func foldedOwners(p *layout.Page, by string, list []owner) []owner {
	keys, bytes := make([]string, len(list)), make([]uint64, len(list))
	for i := range list {
		keys[i], bytes[i] = list[i].key, list[i].bytes
	}
	if p.Unfolded || !fold.FoldsRows(by) {
		return list
	}
	return sumFolds(list, fold.FoldRows(by, keys, bytes), func(sum *owner, f *fold.Fold) {
		sum.name, sum.each = sanitize.Text(f.Name), p.Each(len(f.Members), f.Min, f.Max)
	})
}

// sumFolds makes a row of each fold; name returns the title of a joined row.
func sumFolds(list []owner, folds []fold.Fold, name func(sum *owner, f *fold.Fold)) (rows []owner) {
	for i := range folds {
		f := &folds[i]
		row := list[f.Members[0]]
		if f.Repeated() {
			row = sumOwners(list, f.Members)
			name(&row, f)
		}
		rows = append(rows, row)
	}
	return rows
}

// sumOwners adds owners up. Their places are kept only if all have the same ones, since each lists only its largest.
func sumOwners(list []owner, members []int) owner {
	sum := list[members[0]]
	sum.sites, sum.bytes, sum.lower, sum.row = slices.Clone(sum.sites), 0, nil, nil
	for _, m := range members {
		o := &list[m]
		sum.bytes += o.bytes
		sum.lower = sumOfLower(sum.lower, o.lower)
		if o.row != nil {
			if sum.row == nil {
				sum.row = &report.Row{}
			}
			addRow(sum.row, o.row)
		}
		if m != members[0] {
			sum.sites = addSites(sum.sites, o.sites)
		}
	}
	return sum
}

func addRow(sum, row *report.Row) {
	sum.PeakBytes += row.PeakBytes
	sum.LiveBytes += row.LiveBytes
	sum.PeakBytesLower, sum.LiveBytesLower = sumOfLower(sum.PeakBytesLower, row.PeakBytesLower),
		sumOfLower(sum.LiveBytesLower, row.LiveBytesLower)
	sum.AllocCount += row.AllocCount
	sum.AllocBytes += row.AllocBytes
	sum.FreeCount += row.FreeCount
	sum.RequestedAtPeak = report.PlusRequested(sum.RequestedAtPeak, row.RequestedAtPeak)
	sum.RequestedLive = report.PlusRequested(sum.RequestedLive, row.RequestedLive)
}

// addSites adds up places that are in both lists; nil if they differ.
func addSites(sum, sites []report.RowSite) []report.RowSite {
	if len(sum) != len(sites) {
		return nil
	}
	for i := range sum {
		at := slices.IndexFunc(sites, func(s report.RowSite) bool { return s.Key == sum[i].Key })
		if at < 0 {
			return nil
		}
		sum[i].Bytes += sites[at].Bytes
		sum[i].Rest += sites[at].Rest
	}
	return sum
}

// foldedRow is a row of a group, or several.
type foldedRow struct {
	report.Row
	each string
}

// foldedRows is foldedOwners for the rows of a group.
func foldedRows(p *layout.Page, g *report.Group) []foldedRow {
	rows := make([]foldedRow, 0, len(g.Rows))
	if p.Unfolded || !fold.FoldsRows(g.By) {
		for _, r := range g.Rows {
			rows = append(rows, foldedRow{Row: r})
		}
		return rows
	}
	keys, bytes := make([]string, len(g.Rows)), make([]uint64, len(g.Rows))
	for i := range g.Rows {
		keys[i], bytes[i] = g.Rows[i].Key, g.Rows[i].PeakBytes
	}
	for _, f := range fold.FoldRows(g.By, keys, bytes) {
		sum := foldedRow{Row: g.Rows[f.Members[0]]}
		if f.Repeated() {
			sum = foldedRow{Row: report.Row{Key: f.Name}, each: p.Each(len(f.Members), f.Min, f.Max)}
			for _, m := range f.Members {
				addRow(&sum.Row, &g.Rows[m])
			}
		}
		rows = append(rows, sum)
	}
	return rows
}
