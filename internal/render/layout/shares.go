package layout

import "slices"

// BarWidth is the width of the longest bar of a table, in columns.
const BarWidth = 16

// Fewer keeps the first rows of a list and appends the sum of the others, unless that is a single row, which takes no
// more room.
func Fewer[T any](list []T, limit int, sum func(hidden []T) T) []T {
	if len(list)-1 <= limit {
		return list
	}
	return append(list[:limit:limit], sum(list[limit:]))
}

// SharesOf returns the rows' shares of their sum in tenths of a percent, and the largest row's bytes.
func SharesOf[T any](rows []T, bytes func(*T) uint64) (shares []int, largest uint64) {
	values := make([]uint64, len(rows))
	for i := range rows {
		values[i] = bytes(&rows[i])
		largest = max(largest, values[i])
	}
	return Tenths(values), largest
}

// Heaviest lists the indices of the categories that hold something, most first.
func Heaviest(held []uint64) []int {
	var list []int
	for i, bytes := range held {
		if bytes > 0 {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int {
		if held[a] > held[b] {
			return -1
		}
		if held[a] < held[b] {
			return 1
		}
		return 0
	})
	return list
}

// Sum adds values up.
func Sum(values []uint64) (sum uint64) {
	for _, v := range values {
		sum += v
	}
	return sum
}
