//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"memtrace/analyzer/report"
)

// under is what a category holds.
func under(c report.Categories, key string) uint64 {
	for _, row := range c.Rows {
		if row.Key == key {
			return row.Bytes
		}
	}
	return 0
}

// TestCategoriesOfTraining: with three groupings by rules at once, the categories of each add up to PyTorch's own peak,
// to the byte. Those by call stacks hold what the model and its optimizer must have: parameters, and twice as much for
// Adam's state.
func TestCategoriesOfTraining(t *testing.T) {
	t.Parallel()
	extended(t)
	r := gpt2Training.record(t)
	peak := number(t, r.counters(t)["0"], "allocated_bytes.all.peak")
	rep := jsonReport(t, r.trace, "--by", "category", "--group", "paper=tbd-paper", "--group", "who=libraries")
	if len(rep.Categories) != 3 {
		t.Fatalf("%d groupings", len(rep.Categories))
	}
	for _, c := range rep.Categories {
		var sum uint64
		for _, row := range c.Rows {
			sum += row.Bytes
		}
		equal(t, c.By+": sum over the categories", sum, peak)
		equal(t, c.By+": tracked", c.TrackedBytes, peak)
		equal(t, c.By+": excess", c.ExcessBytes, 0)
		if others := under(c, "Others"); c.By != "paper" && others*1000 > peak {
			t.Errorf("%s: %d bytes of %d under Others", c.By, others, peak)
		}
	}
	byTorch, paper, who := rep.Categories[0], rep.Categories[1], rep.Categories[2]
	// PyTorch's allocator returns a block as a whole where less than 1 MiB would be left of it, so that equal tensors
	// differ a little.
	parameters, state := under(byTorch, "Parameters"), under(byTorch, "Optimizer state")
	if state < 2*parameters*99/100 || state > 2*parameters*101/100 {
		t.Errorf("optimizer state %d, parameters %d: Adam's is twice as large", state, parameters)
	}
	equal(t, "weights", under(paper, "Weights"), parameters)
	equal(t, "workspace", under(paper, "Workspace"), under(byTorch, "Workspace"))
	equal(t, "cuBLAS", under(who, "cuBLAS"), under(byTorch, "Workspace"))
	for _, key := range []string{"Parameters", "Feature maps", "Intermediate gradients", "Workspace"} {
		if under(byTorch, key) == 0 {
			t.Errorf("nothing under %s", key)
		}
	}
	checkExpected(t, r.trace)
	// A preset that was written to a file is the same preset.
	file := filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(file, []byte(memtrace(t, "rules", "torch")), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := memtrace(t, "report", "--rules", file, r.trace), memtrace(t, "report", "--rules", "torch",
		r.trace); got != want {
		t.Errorf("the copy of a preset gives another report:\n%s", got)
	}
}

// checkExpected: what is expected less what the driver returned is Untrackable, also below zero.
func checkExpected(t *testing.T, trace string) {
	t.Helper()
	rep := jsonReport(t, trace, "--by", "category", "--expected-sum", "1GiB")
	got, want := value(rep.Categories[0].Untrackable).Bytes, 1<<30-int64(rep.Ledgers[0].WholeBytes)
	if got != want || got >= 0 {
		t.Errorf("untrackable %d, want %d", got, want)
	}
}
