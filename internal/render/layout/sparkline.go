package layout

import "slices"

// Sparkline draws the highest values of equal parts of a list, each in one column of at most eight steps.
func Sparkline(values []uint64, columns int, ascii bool) string {
	steps := []rune("▁▂▃▄▅▆▇█")
	if ascii {
		steps = []rune("_.,-=+*#")
	}
	highest := slices.Max(values)
	var line []rune
	for c := range columns {
		var high uint64
		for _, v := range values[c*len(values)/columns : max((c+1)*len(values)/columns, c*len(values)/columns+1)] {
			high = max(high, v)
		}
		line = append(line, steps[min(int(float64(high)/float64(max(highest, 1))*float64(len(steps))), len(steps)-1)])
	}
	return string(line)
}
