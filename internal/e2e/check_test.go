//go:build e2e

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// checkResult is a gate of memtrace check --json.
type checkResult struct {
	Gate, Status, Text string
	Limit, Value       float64
}

// checked holds gates against a trace or a folder, and returns the results and the exit status.
func checked(t *testing.T, path string, args ...string) ([]checkResult, int) {
	t.Helper()
	cmd := exec.Command(command(), append([]string{"check", "--json", path}, args...)...)
	text, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var outcome struct{ Results []checkResult }
	if err := json.Unmarshal(text, &outcome); err != nil {
		t.Fatalf("memtrace check %v: %v\n%s", args, err, exit.Stderr)
	}
	return outcome.Results, cmd.ProcessState.ExitCode()
}

// exactly demands that a limit of exactly the figure passes and one of a byte less fails, with the gate's sentence.
func exactly(t *testing.T, path, gate string, bytes uint64, says string, more ...string) {
	t.Helper()
	limit := func(bytes uint64) []string {
		return append([]string{"--max", fmt.Sprintf("%s=%d", gate, bytes)}, more...)
	}
	if results, status := checked(t, path, limit(bytes)...); status != 0 {
		t.Errorf("%s=%d: status %d, %+v", gate, bytes, status, results)
	}
	results, status := checked(t, path, limit(bytes-1)...)
	if status != 1 || len(results) != 1 || results[0].Value != float64(bytes) ||
		!strings.Contains(results[0].Text, says) {
		t.Errorf("%s=%d: status %d, %+v; want %q", gate, bytes-1, status, results, says)
	}
}

// A gate on an owner is about its own highest memory: of a tag what a report of that tag alone has as its peak, of a
// category the most that any iteration counted of it, which a second replay of the blocks counts in another way. With
// --at peak it is about the row of the report.
func TestGateOnOwners(t *testing.T) {
	t.Parallel()
	r := gpt2Training.record(t)
	rows := func(by string) map[string]uint64 {
		bytes := map[string]uint64{}
		for _, g := range jsonReport(t, r.trace, "--by", by).Groups {
			if g.Level == report.LevelFramework {
				for _, row := range g.Rows {
					bytes[row.Key] = row.PeakBytes
				}
			}
		}
		return bytes
	}
	later := 0
	atPeak := rows("tag")
	for _, tag := range []string{"h.5", "head", "loss", "optimizer"} {
		alone := jsonReport(t, r.trace, "--tag", tag).Framework.PeakBytes
		exactly(t, r.trace, "tag:"+tag, alone, "tag "+tag+" is ")
		if alone > atPeak[tag] {
			later++
			exactly(t, r.trace, "tag:"+tag, max(atPeak[tag], 1), " at peak, ", "--at", "peak")
		}
	}
	if later == 0 {
		t.Error("every tag is highest at the peak of all: that shows nothing")
	}
	training := trainingOf(t, r.trace)
	atPeak = rows("category")
	for _, category := range []string{"Parameters", "Optimizer state", "Feature maps", "Gradients",
		"Intermediate gradients"} {
		at, most := column(t, training, category), uint64(0)
		for _, i := range training.Iterations {
			most = max(most, i.Highest[at])
		}
		if most < atPeak[category] || most == 0 {
			t.Errorf("%s: at most %d, and %d at the peak of all", category, most, atPeak[category])
		}
		exactly(t, r.trace, "category:"+category, most, "category "+category+" is ")
	}
	for _, by := range []string{"module:model.h.5", "site:train/gpt2.py:45", "operator:aten::gelu"} {
		results, _ := checked(t, r.trace, "--max", by+"=0", "--at", "peak")
		highest, status := checked(t, r.trace, "--max", by+"=0")
		if status != 1 || len(results) != 1 || highest[0].Value < results[0].Value || results[0].Value == 0 {
			t.Errorf("%s: %+v at the peak of all, %+v at its highest", by, results, highest)
		}
	}
}

// Of three ranks, one trains with a larger batch: the spread is that of their peaks, and the batch's rank is named.
func TestGateOnRanks(t *testing.T) {
	t.Parallel()
	extended(t)
	folder := t.TempDir()
	var peaks []uint64
	for rank, batch := range []string{"8", "14", "8"} {
		r := program{framework: torch27, args: []string{"fit.py", "wide", batch},
			env: []string{"NULLCUDA_MEM=4G", "RANK=" + strconv.Itoa(rank), "WORLD_SIZE=3"}}.record(t)
		peaks = append(peaks, jsonReport(t, r.trace).Framework.PeakBytes)
		if err := os.Link(r.trace, filepath.Join(folder, strconv.Itoa(rank)+".bin")); err != nil {
			t.Fatal(err)
		}
	}
	spread := 100 * float64(peaks[1]-peaks[0]) / float64(peaks[0])
	if results, status := checked(t, folder, "--max", fmt.Sprintf("rank-spread=%.3f%%", spread+0.01)); status != 0 {
		t.Errorf("%+v", results)
	}
	results, status := checked(t, folder, "--max", fmt.Sprintf("rank-spread=%.3f%%", spread-0.01))
	if status != 1 || !strings.Contains(results[0].Text, "1.bin has most") ||
		!strings.Contains(results[0].Text, "by module") {
		t.Errorf("%+v", results)
	}
	if results, status := checked(t, filepath.Join(folder, "1.bin"), "--max", "rank-spread=5%"); status != 2 {
		t.Errorf("one rank: %+v", results)
	}
}

// What PyTorch pins is counted as the driver counts it.
func TestGateOnPinned(t *testing.T) {
	t.Parallel()
	r := program{framework: torch27, args: []string{"two_optimizers.py", "--memory-stats", "STATS"}}.record(t)
	pinned := jsonReport(t, r.trace).Other["host"].PeakBytes
	if pinned < 1<<20 {
		t.Fatalf("only %d bytes are pinned", pinned)
	}
	exactly(t, r.trace, "pinned", pinned, "pinned memory is ")
}

// Between two marks a program gives back a part of what it kept; the window of the report, which PyTorch's own counters
// confirm in TestWindows, has the same part.
func TestGateOnReleased(t *testing.T) {
	t.Parallel()
	extended(t)
	r := program{framework: torch27, args: []string{"windows.py", "--memory-stats", "STATS"}}.record(t)
	for _, span := range [][2]string{{"mark:cache", "mark:cached"}, {"mark:built", "teardown"}} {
		level := jsonReport(t, r.trace, "--from", span[0], "--to", span[1]).Window.Levels[0]
		freed := 100 * float64(level.Freed.Bytes) / float64(level.Start.Bytes)
		gate := func(part float64) []string {
			return []string{"--assert", fmt.Sprintf("released-after=%s..%s>=%.4f%%", span[0], span[1], part)}
		}
		if results, status := checked(t, r.trace, gate(max(0, freed-0.001))...); status != 0 {
			t.Errorf("%v: %+v", span, results)
		}
		results, status := checked(t, r.trace, gate(freed+0.001)...)
		if status != 1 || !strings.Contains(results[0].Text, "that were live at "+span[0]) {
			t.Errorf("%v: %+v", span, results)
		}
	}
	if results, status := checked(t, r.trace, "--assert", "released-after=mark:sleep>=90%"); status != 2 ||
		!strings.Contains(results[0].Text, `no mark "sleep"`) {
		t.Errorf("%+v", results)
	}
}
