package render

import (
	"fmt"
	"slices"
	"strings"
)

// each says how much the parts of a fold hold: "8 × 832.0 MiB", or from the smallest to the largest. "" for one part
// alone.
func (o Options) each(count int, least, most uint64) string {
	times, to := " × ", "–"
	if o.ASCII {
		times, to = " x ", "-"
	}
	if count < 2 {
		return ""
	}
	low, high := Bytes(least), Bytes(most)
	if low != high {
		number, unit, _ := strings.Cut(low, " ")
		if strings.HasSuffix(high, " "+unit) {
			low = number
		}
		high = low + to + high
	}
	return fmt.Sprint(count, times, high)
}

// eachColumn puts a column behind the names that says how much each part of a fold holds, if any row is a fold. each
// has one text for every row.
func eachColumn(columns []column, rows [][]cell, each []string) ([]column, [][]cell) {
	if !slices.ContainsFunc(each, func(text string) bool { return text != "" }) {
		return columns, rows
	}
	for i := range rows {
		rows[i] = slices.Insert(rows[i], 1, cell{each[i], faint})
	}
	return slices.Insert(columns, 1, column{title: "each", right: true, optional: 2}), rows
}
