package render

import (
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// The rows below a table of parameters lead from the elements to the blocks, where it is known of every block what was
// requested; and the remark has the exact bytes.
func TestParametersLeadToTheirBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		requested *report.Requested
		blocks    uint64
		rows      string // name and bytes
		remark    string
	}{
		"rounded": {&report.Requested{Bytes: 900, RestBytes: 124}, 1024,
			"rounding and unsplit remainder 124 B, their blocks 1.00 KiB",
			"900 B of elements, all of which was requested; their blocks hold 1,024 B."},
		"shared": {&report.Requested{Bytes: 1000, RestBytes: 24}, 1024,
			"other tensors in their blocks 100 B, rounding and unsplit remainder 24 B, their blocks 1.00 KiB",
			"1,000 B were requested for their blocks, which hold 1,024 B. A block that several share"},
		"exact":   {&report.Requested{Bytes: 900}, 900, "", "their blocks hold as much."},
		"unknown": {nil, 1024, "", "The other 124 B are rounding, and blocks that several share"},
		"partly": {&report.Requested{Bytes: 500, UnknownBytes: 524}, 1024, "",
			"The other 124 B are rounding, and blocks that several share"},
		"views of it": {&report.Requested{Bytes: 700, RestBytes: 324}, 1024, "",
			"The other 124 B are rounding, and blocks that several share"},
	} {
		sum := parameterSum{weight: 900, blocks: c.blocks, requested: c.requested}
		var rows []string
		for _, row := range sum.blockRows() {
			rows = append(rows, fmt.Sprint(row[0].Text, " ", row[4].Text))
		}
		if got := strings.Join(rows, ", "); got != c.rows {
			t.Errorf("%s: %q, want %q", name, got, c.rows)
		}
		if got := sum.blockRemark(); !strings.Contains(got, c.remark) {
			t.Errorf("%s: %q, want %q", name, got, c.remark)
		}
	}
}
