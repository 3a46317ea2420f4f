package cause

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/profile"
)

// PickCross finds the two groupings of Question.Cross; nil if none were requested.
func PickCross(wanted []string, byRules []*profile.Grouping) ([]*profile.Grouping, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	picked, err := profile.PickGroupings(wanted, byRules)
	if err != nil {
		return nil, err
	}
	if len(wanted) != 2 || len(picked) != 2 {
		return nil, fmt.Errorf("a crossed table needs two different groupings; got %s", strings.Join(wanted, ", "))
	}
	return picked, nil
}

// CrossOf crosses what was held at a moment by two groupings.
func CrossOf(r *profile.Resolver, by []*profile.Grouping, list []profile.Held) *report.Cross {
	v := &report.Cross{By: [2]string{by[0].Name, by[1].Name}, Columns: []report.CrossColumn{},
		Rows: []report.CrossRow{}}
	var index [2]*profile.RowIndex
	for i := range index {
		index[i] = profile.NewRowIndex(r, by[i])
	}
	cells := make(map[[2]int]uint64)
	for i := range list {
		h := &list[i]
		row, column := index[0].Number(index[0].By.ID(r, &h.Origin)), index[1].Number(index[1].By.ID(r, &h.Origin))
		cells[[2]int{row, column}] += h.Bytes
		v.WholeBytes += h.Bytes
	}
	rows, columns := make([]uint64, len(index[0].IDs)), make([]uint64, len(index[1].IDs))
	for at, bytes := range cells {
		rows[at[0]] += bytes
		columns[at[1]] += bytes
	}
	place := make([]int, len(columns))
	for n, at := range mostFirst(columns, index[1].Keys) {
		key, label := index[1].Name(index[1].IDs[at])
		v.Columns = append(v.Columns, report.CrossColumn{Key: key, Label: label, Bytes: columns[at]})
		place[at] = n
	}
	rowAt := make([]int, len(rows))
	for n, at := range mostFirst(rows, index[0].Keys) {
		key, label := index[0].Name(index[0].IDs[at])
		v.Rows = append(v.Rows, report.CrossRow{Key: key, Label: label, Bytes: rows[at],
			Cells: make([]uint64, len(columns))})
		rowAt[at] = n
	}
	for at, bytes := range cells {
		v.Rows[rowAt[at[0]]].Cells[place[at[1]]] = bytes
	}
	return v
}

// mostFirst returns the order of keys by what they hold.
func mostFirst(bytes []uint64, keys []string) []int {
	order := make([]int, len(bytes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(bytes[b], bytes[a]), strings.Compare(keys[a], keys[b]))
	})
	return order
}
