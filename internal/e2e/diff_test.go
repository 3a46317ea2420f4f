//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"memtrace/analyzer/diff"
	"memtrace/analyzer/render"
	"memtrace/analyzer/report"
)

// One layer of GPT-2 is widened; the diff names its tag first.
func TestDiffNamesWidenedLayer(t *testing.T) {
	t.Parallel()
	extended(t)
	base := program{framework: torch27, args: []string{"gpt2.py", "--steps", "2"}}.record(t)
	wide := program{framework: torch27, args: []string{"gpt2.py", "--steps", "2", "--width", "2"}}.record(t)
	var changes diff.Diff
	if err := json.Unmarshal([]byte(memtrace(t, "diff", "--json", base.trace, wide.trace)), &changes); err != nil {
		t.Fatal(err)
	}
	seen := false
	for _, g := range changes.Groups {
		if g.By == "tag" && g.Level == "framework" {
			seen = true
			if len(g.Rows) == 0 || g.Rows[0].Key != "h.5" {
				t.Errorf("first row of the diff by tag is %+v", g.Rows)
			}
		}
	}
	if !seen {
		t.Error("the diff has no rows by tag")
	}
	text := memtrace(t, "diff", base.trace, wide.trace)
	if h5, optimizer := strings.Index(text, "h.5"), strings.Index(text, "optimizer"); h5 < 0 || optimizer < h5 {
		t.Errorf("h.5 is not named first:\n%s", text)
	}
	checkRowsSum(t, jsonReport(t, base.trace, "--by", "tag,api,library,device,thread"))
}

// checkRowsSum demands that the rows of every grouping add up to their level.
func checkRowsSum(t *testing.T, r render.Document) {
	t.Helper()
	levels := map[string]report.Level{"framework": r.Framework, "driver": r.Driver}
	groups := map[string]bool{}
	for _, g := range r.Groups {
		groups[g.By+"/"+g.Level] = true
		var peak, live, allocs uint64
		for _, row := range g.Rows {
			peak, live, allocs = peak+row.PeakBytes, live+row.LiveBytes, allocs+row.AllocCount
		}
		if l := levels[g.Level]; peak != l.PeakBytes || live != l.LiveBytes || allocs != l.AllocCount {
			t.Errorf("rows by %s of the %s level add up to %d, %d, %d, not %+v", g.By, g.Level, peak, live, allocs, l)
		}
	}
	if len(groups) != 10 {
		t.Errorf("groups are %v", groups)
	}
}
