package layout

import "strings"

// eighths are the Unicode blocks that fill one to seven eighths of a column.
var eighths = [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// Bar draws value on a scale on which the largest value fills width columns. A value above zero shows at least a trace
// of itself.
func Bar(value, largest uint64, width int, ascii bool) string {
	if value == 0 || largest == 0 || width <= 0 {
		return ""
	}
	steps := 8
	if ascii {
		steps = 1
	}
	n := max(1, int(float64(value)/float64(largest)*float64(width*steps)+0.5))
	n = min(n, width*steps)
	if ascii {
		return strings.Repeat("#", n)
	}
	return strings.Repeat("█", n/8) + eighths[n%8]
}
