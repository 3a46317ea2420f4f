package layout

import (
	"fmt"
	"slices"
	"strings"
)

// Each formats the bytes of each part of a fold: "8 × 832.0 MiB", or from the smallest to the largest. "" for one part
// alone.
func (o Options) Each(count int, least, most uint64) string {
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

// EachColumn adds a column after the names with the bytes of each part of a fold, if any row is a fold. each has one
// text for every row.
func EachColumn(columns []Column, rows [][]Cell, each []string) ([]Column, [][]Cell) {
	if !slices.ContainsFunc(each, func(text string) bool { return text != "" }) {
		return columns, rows
	}
	for i := range rows {
		rows[i] = slices.Insert(rows[i], 1, Cell{each[i], Faint})
	}
	return slices.Insert(columns, 1, Column{Title: "each", Right: true, Optional: 2}), rows
}
