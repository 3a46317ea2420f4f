//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render"
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

// The dropout that follows a widened Linear grew most, and was named as what grew. The Linear is named and comes first;
// with a larger batch nothing is wider.
func TestCauseIsTheWidenedLayer(t *testing.T) {
	t.Parallel()
	extended(t)
	record := func(args ...string) string {
		return program{framework: torch27, args: append([]string{"widened.py"}, args...)}.record(t).trace
	}
	base, wide, batch := record("512"), record("1024"), record("512", "8192")
	const cause, follows = "by module net.{0..3}.up (+", "net.{0..3}.drop grew since net.{0..3}.up is wider."
	for _, by := range [][]string{{}, {"--by", "module"}, {"--by", "module,category"}} {
		text := memtrace(t, append(append([]string{"diff"}, by...), base, wide)...)
		up, drop := strings.Index(text, "\n  net.{0..3}.up "), strings.Index(text, "\n  net.{0..3}.drop ")
		if len(by) > 0 && (up < 0 || drop < up || !strings.Contains(text, follows)) ||
			len(by) > 0 && !strings.Contains(strings.Join(strings.Fields(text), " "), cause) {
			t.Errorf("%v: up is not what comes first, or drop does not follow it:\n%s", by, text)
		}
		text = memtrace(t, append(append([]string{"diff"}, by...), base, batch)...)
		if strings.Contains(text, "wider") {
			t.Errorf("%v: a larger batch is called a wider module:\n%s", by, text)
		}
	}
	results, _ := checked(t, wide, "--baseline", base)
	if len(results) == 0 || !strings.Contains(results[0].Text, cause) {
		t.Errorf("check blames %+v", results)
	}
}

// One program that ran from two checkouts is compared line by line: nothing is new or gone but what its change made so.
func TestDiffOfTwoCheckouts(t *testing.T) {
	t.Parallel()
	extended(t)
	base := program{framework: torch27, args: []string{"checkout.py", "main"}}.record(t)
	pr := program{framework: torch27, args: []string{"checkout.py", "pr", "changed"}}.record(t)
	var changes diff.Diff
	text := memtrace(t, "diff", "--json", "--by", "site", base.trace, pr.trace)
	if err := json.Unmarshal([]byte(text), &changes); err != nil {
		t.Fatal(err)
	}
	for _, g := range changes.Groups {
		if g.By != "site" || g.Level != report.LevelFramework {
			continue
		}
		for _, row := range g.Rows {
			if row.State == diff.StateNew || row.State == diff.StateGone {
				t.Errorf("%s is %s", row.Key, row.State)
			}
		}
		first := g.Rows[0]
		if first.Key != "pr/net/model.py:8 DropPath.forward" ||
			first.BaseKey != "main/net/model.py:7 DropPath.forward" ||
			first.PeakBytes.Delta != 5*4<<20 { // masks of the five blocks whose gradient is still to come
			t.Errorf("what grew most is %+v", first)
		}
	}
	if text = memtrace(t, "diff", base.trace, pr.trace); !strings.Contains(text,
		"PyTorch peak +19.0 MiB (+23.7%), 80.0 MiB to 99.0 MiB: by site pr/net/model.py:8 DropPath.forward") {
		t.Errorf("the diff begins otherwise:\n%s", text)
	}
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
