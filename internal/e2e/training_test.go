//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// column returns the place of a category in a training's moments.
func column(t *testing.T, tr *report.Training, category string) int {
	t.Helper()
	at := slices.Index(tr.Categories, category)
	if at < 0 {
		t.Fatalf("no category %q among %q", category, tr.Categories)
	}
	return at
}

func addUp(list []uint64) (total uint64) {
	for _, v := range list {
		total += v
	}
	return total
}

// trainingOf returns a report's figures of training.
func trainingOf(t *testing.T, trace string, args ...string) *report.Training {
	t.Helper()
	rep := jsonReport(t, trace, append([]string{"--view", "modules"}, args...)...)
	if rep.Training == nil {
		t.Fatal("the report says nothing of training")
	}
	return rep.Training
}

// watchedBy returns the run of a training script by one of the oracles in Python, which writes to result.stats.
// Arguments are the script below testdata/train and its own.
func (p program) watchedBy(oracle string) program {
	script := filepath.Join(guest.Root(), "testdata", "train", p.args[0])
	p.args = append([]string{filepath.Join("..", "oracle", oracle), "STATS", script}, p.args[1:]...)
	return p
}

// oracleJSON reads what an oracle in Python wrote.
func oracleJSON[T any](t *testing.T, r *result) (value T) {
	t.Helper()
	text, err := os.ReadFile(r.stats)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatalf("%s: %v", r.stats, err)
	}
	return value
}

// withPackages adds Hugging Face's libraries to a program, and removes memtrace's package unless its folder is given.
func (p program) withPackages(t *testing.T, more ...string) program {
	t.Helper()
	folders := append([]string{p.packageFolder(t, "packages.txt")}, more...)
	p.env = append(slices.Clone(p.env), "PYTHONPATH="+strings.Join(folders, ":"), "HF_HUB_OFFLINE=1", "USE_TF=0",
		"USE_FLAX=0")
	return p
}
