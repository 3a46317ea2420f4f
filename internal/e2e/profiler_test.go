//go:build e2e

package e2e

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// figures are PyTorch's own of one iteration.
type figures struct {
	Epoch           int               `json:"epoch"`
	Iteration       int               `json:"iteration"`
	Reserved        uint64            `json:"reserved"`
	HighestReserved uint64            `json:"highest_reserved"`
	Weights         map[string]uint64 `json:"weights"`
	Gradients       map[string]uint64 `json:"gradients"`
}

// profiled runs the program with the three calls and returns its result and PyTorch's figures of each iteration.
func profiled(t *testing.T, args ...string) (*result, []figures) {
	t.Helper()
	r := program{framework: torch27,
		args: append([]string{"profiled.py"}, args...)}.record(t)
	var list []figures
	for line := range strings.Lines(r.stdout) {
		text, ok := strings.CutPrefix(line, "figures ")
		if !ok {
			continue
		}
		var f figures
		if err := json.Unmarshal([]byte(text), &f); err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	if len(list) != 8 {
		t.Fatalf("figures of %d iterations, want 8", len(list))
	}
	return r, list
}

// TestMemoryProfiler: the tables that the three calls print while the program runs hold PyTorch's own figures, in the
// shape of the TBD profiler, and so does the CSV.
func TestMemoryProfiler(t *testing.T) {
	t.Parallel()
	r, list := profiled(t)
	if r.stderr != "" {
		t.Errorf("standard error: %s", r.stderr)
	}
	tables := regexp.MustCompile(
		`(?s)\*{43}\nMemory Usage for Iteration (\d) of Epoch (\d)\n\*{43}\n(.*?)Intermediate gradients\.+\d+ MB\n`).FindAllStringSubmatch(r.stdout, -1)
	if len(tables) != 4 {
		t.Fatalf("%d tables in\n%s", len(tables), r.stdout)
	}
	megabytes := func(bytes uint64) uint64 { return uint64(math.RoundToEven(float64(bytes) / 1e6)) }
	for i, table := range tables {
		f := list[2*i+1]
		if got, want := table[1]+" of "+table[2], fmt.Sprintf("%d of %d", f.Iteration, f.Epoch); got != want {
			t.Errorf("table %d is of iteration %s, want %s", i, got, want)
		}
		row := func(label string, bytes uint64) {
			line := fmt.Sprintf("%s%s MB\n", label,
				strings.ReplaceAll(fmt.Sprintf("%*d", 50-len(label), megabytes(bytes)), " ", "."))
			if !strings.Contains(table[3], line) {
				t.Errorf("iteration %s of epoch %s: want %q in\n%s", table[1], table[2], line, table[3])
			}
		}
		row("Peak cached", f.HighestReserved)
		row("Current cached", f.Reserved)
		for name, bytes := range f.Weights {
			row("  "+name, bytes)
			row("  "+name+" grad", f.Gradients[name])
		}
	}
	files, _ := filepath.Glob(filepath.Join(r.dir, "memory_csv_data", "*.csv"))
	if len(files) != 1 {
		t.Fatalf("CSV files: %v", files)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if rows := readRows(t, string(text)); len(rows) != 5 || rows[4][0] != "2" || rows[4][1] != "4" {
		t.Errorf("rows of the CSV: %v", rows)
	}
}

// TestIterationsAsCSV: the CSV of every iteration has the bytes of every weight and gradient, and of the reserved
// memory at its end; feature maps and gradients between layers are there and do not grow.
func TestIterationsAsCSV(t *testing.T) {
	t.Parallel()
	extended(t)
	r, list := profiled(t)
	rows := readRows(t, memtrace(t, "report", "--view", "iterations", "--csv", "-", r.trace))
	if len(rows) != 1+len(list) {
		t.Fatalf("%d rows, want %d", len(rows), 1+len(list))
	}
	at := func(row []string, column string) string {
		i := slices.Index(rows[0], column)
		if i < 0 {
			t.Fatalf("no column %s in %q", column, rows[0])
		}
		return row[i]
	}
	for i, f := range list {
		row := rows[1+i]
		want := map[string]uint64{"epoch": uint64(f.Epoch), "iteration": uint64(f.Iteration),
			"peak_cached": f.HighestReserved, "current_cached": f.Reserved}
		for name, bytes := range f.Weights {
			want[name], want[name+"_grad"] = bytes, f.Gradients[name]
			want["total_weight_usage"] += bytes
			want["total_layer_weight_gradient_usage"] += f.Gradients[name]
		}
		for column, number := range want {
			if got := at(row, column); got != fmt.Sprint(number) {
				t.Errorf("iteration %d of epoch %d: %s is %s, want %d", f.Iteration, f.Epoch, column, got, number)
			}
		}
	}
	for _, column := range []string{"total_feature_map_usage", "intermediate_gradients"} {
		// PyTorch's allocator returns blocks as a whole where less than 1 MiB would be left of them, so that equal
		// iterations differ a little.
		var highest [3]uint64 // by epoch
		for _, row := range rows[1:] {
			epoch := at(row, "epoch")[0] - '0'
			bytes, err := strconv.ParseUint(at(row, column), 10, 64)
			if err != nil || bytes == 0 {
				t.Errorf("%s is %s", column, at(row, column))
			}
			highest[epoch] = max(highest[epoch], bytes)
		}
		if highest[2] > highest[1] {
			t.Errorf("%s grows: %d in the first epoch, %d in the second", column, highest[1], highest[2])
		}
	}
}

// TestLeakPerIteration: a program that keeps 2 MiB of every iteration is reported, with the bytes and the category; the
// same program without the leak is not.
func TestLeakPerIteration(t *testing.T) {
	t.Parallel()
	extended(t)
	leaky, _ := profiled(t, "--leak", "2097152")
	// PyTorch's allocator returns a block as a whole where less than 1 MiB would be left of it: some of the blocks are
	// a little larger.
	grows := regexp.MustCompile(`GROWS by 2\.\d+ MiB per iteration: Others \+1\d\.\d MiB`)
	if text := memtrace(t, "report", leaky.trace); !strings.Contains(text, "Memory grows by ") {
		t.Errorf("the leak is not told:\n%s", text)
	}
	for _, args := range [][]string{{"report", "--details", leaky.trace},
		{"report", "--view", "iterations", leaky.trace}} {
		if text := memtrace(t, args...); !grows.MatchString(strings.Join(strings.Fields(text), " ")) {
			t.Errorf("%v: the leak is not told:\n%s", args, text)
		}
	}
	whole, _ := profiled(t)
	if text := memtrace(t, "report", whole.trace); strings.Contains(text, "Memory grows") {
		t.Errorf("a leak is told where there is none:\n%s", text)
	}
	if text := memtrace(t, "report", "--details", whole.trace); strings.Contains(text, "GROWS") ||
		!strings.Contains(text, "it does not grow steadily") {
		t.Errorf("a leak is told where there is none:\n%s", text)
	}
}

// readRows reads a CSV without its comment.
func readRows(t *testing.T, text string) [][]string {
	t.Helper()
	r := csv.NewReader(strings.NewReader(text))
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows: %v", len(rows), err)
	}
	return rows
}
