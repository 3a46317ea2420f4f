//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// recipeRows are the rows of docs/at-scale/*.sql, by name. Numbers keep all digits.
type recipeRows map[string][][]any

// columns lists the values of some columns of a recipe's rows, as text.
func (r recipeRows) columns(recipe string, columns ...int) (list []string) {
	for _, row := range r[recipe] {
		var values []string
		for _, c := range columns {
			values = append(values, fmt.Sprint(row[c]))
		}
		list = append(list, strings.Join(values, " "))
	}
	return list
}

// recipes runs every recipe over tables.
func recipes(t *testing.T, engine, folder string) recipeRows {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(guest.Root(), "docs", "at-scale", "*.sql"))
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d recipes: %v", len(paths), err)
	}
	var text json.RawMessage
	readWith(t, filepath.Join(pythonTools(t, "internal/tools/"+engine+"-requirements.txt"), "python"), "at_scale.py",
		&text, append([]string{engine, folder}, paths...)...)
	var rows recipeRows
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

var startKey = regexp.MustCompile(`(?m)^info key="process.start_unix_ns" value="\d+"$`)

// ofRank writes a recording as if it were that of a rank of a job, which began at a time, and returns its path.
func ofRank(t *testing.T, folder, trace string, rank int, start int64) string {
	t.Helper()
	text := memtrace(t, "dump", trace)
	head, rest, _ := strings.Cut(text, "\n")
	if !startKey.MatchString(rest) {
		t.Fatal("the recording does not say when it began")
	}
	rest = startKey.ReplaceAllString(rest, fmt.Sprintf(`info key="process.start_unix_ns" value="%d"`, start))
	path := filepath.Join(folder, fmt.Sprintf("%d-%d", start, rank))
	text = fmt.Sprintf("%s\ninfo key=\"env.RANK\" value=\"%d\"\n%s", head, rank, rest)
	if err := os.WriteFile(path+".txt", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	memtrace(t, "dump", "--encode", path+".txt", "-o", path+".bin")
	return path + ".bin"
}

// faultyRanks are 64 ranks, three of them with a fault, and a later run of two ranks with the larger batch, as tables.
func faultyRanks(t *testing.T) (tables, healthy, larger string) {
	t.Helper()
	recorded := func(fault string) string {
		return program{framework: torch27, args: []string{"faulty_rank.py", fault},
			env: []string{"NULLCUDA_DEVICES=2"}}.record(t).trace
	}
	faults := map[int]string{9: recorded("leak"), 23: recorded("batch"), 42: recorded("stray")}
	healthy, larger = recorded("none"), faults[23]
	folder := t.TempDir()
	tables = filepath.Join(folder, "tables")
	first := []string{"-q", "export", "parquet", "--run", "first", "-o", tables}
	for rank := range 64 {
		trace := healthy
		if faults[rank] != "" {
			trace = faults[rank]
		}
		first = append(first, ofRank(t, folder, trace, rank, 1_790_000_000_000_000_000))
	}
	memtrace(t, first...)
	for rank := range 2 { // each by a command of its own, as on machines of their own
		memtrace(t, "-q", "export", "parquet", "--run", "second", "-o", tables,
			ofRank(t, folder, larger, rank, 1_790_000_900_000_000_000))
	}
	return tables, healthy, larger
}

// TestRecipesNameThePlanted: over 64 ranks of which one leaks, one has a larger batch and one has memory on another
// rank's device, the recipes name exactly these, with what differs, and their figures are the report's, to the byte.
func TestRecipesNameThePlanted(t *testing.T) {
	t.Parallel()
	extended(t)
	tables, healthy, larger := faultyRanks(t)
	rows := recipes(t, "duckdb", tables)
	for recipe, want := range map[string][]string{
		"growth": {"first 9 262144 Others"},
		"outliers": {"first 9 Others", "first 23 Intermediate gradients", "first 23 Feature maps",
			"first 23 Others"},
		"stray_devices": {"first 42"},
	} {
		columns := map[string][]int{"growth": {0, 1, 2, 4}, "outliers": {0, 1, 2}, "stray_devices": {0, 1}}[recipe]
		if got := rows.columns(recipe, columns...); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s names\n%s\nnot\n%s", recipe, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	peaks := strings.Join(rows.columns("peak_per_rank", 0, 1, 3), "\n")
	categories := strings.Join(rows.columns("category_at_peak", 0, 1, 2, 3), "\n")
	for rank, trace := range map[string]string{"first 0": healthy, "first 23": larger, "second 1": larger} {
		rep := jsonReport(t, trace, "--by", "category")
		if want := fmt.Sprintf("%s %d", rank, rep.Framework.PeakBytes); !strings.Contains(peaks, want) {
			t.Errorf("peak_per_rank lacks %q:\n%s", want, peaks)
		}
		listed := 0
		for _, row := range rep.Categories[0].Rows {
			if row.Bytes == 0 {
				continue
			}
			listed++
			want := fmt.Sprintf("%s %s %d\n", rank, row.Key, row.Bytes)
			if !strings.Contains(categories+"\n", want) {
				t.Errorf("category_at_peak lacks %q:\n%s", want, categories)
			}
		}
		if got := strings.Count(categories, rank+" "); got != listed {
			t.Errorf("category_at_peak has %d categories of rank %s, the report %d", got, rank, listed)
		}
	}
	if got := strings.Join(rows.columns("changes", 0), "\n"); !strings.Contains(got, "Feature maps") ||
		strings.Contains(got, "Parameters") {
		t.Errorf("a larger batch changes\n%s", got)
	}
}

// TestRecipesOnSpark: Spark gives the rows that DuckDB gives, and tables that its tasks have converted give them, too.
func TestRecipesOnSpark(t *testing.T) {
	t.Parallel()
	rarely(t, true)
	if _, err := exec.LookPath("java"); err != nil {
		t.Skip("Spark needs Java 17")
	}
	tables, _, _ := faultyRanks(t)
	want, got := recipes(t, "duckdb", tables), recipes(t, "spark", tables)
	for recipe, rows := range want {
		if fmt.Sprint(got[recipe]) != fmt.Sprint(rows) {
			t.Errorf("%s: Spark gives\n%v\nDuckDB\n%v", recipe, got[recipe], rows)
		}
	}
	converted := convertedBySpark(t, filepath.Dir(tables))
	want, got = recipes(t, "duckdb", filepath.Join(filepath.Dir(tables), "first")), recipes(t, "duckdb", converted)
	for recipe, rows := range want {
		if fmt.Sprint(got[recipe]) != fmt.Sprint(rows) {
			t.Errorf("%s: of tables that Spark's tasks wrote\n%v\nof one command\n%v", recipe, got[recipe], rows)
		}
	}
}

// convertedBySpark has docs/at-scale/convert.py convert the first run's traces, and one command into the folder first.
func convertedBySpark(t *testing.T, folder string) string {
	t.Helper()
	traces, err := filepath.Glob(filepath.Join(folder, "1790000000000000000-*.bin"))
	if err != nil || len(traces) != 64 {
		t.Fatalf("%d traces of the first run: %v", len(traces), err)
	}
	memtrace(t, append([]string{"-q", "export", "parquet", "--run", "first", "-o", filepath.Join(folder, "first")},
		traces...)...)
	converted := filepath.Join(folder, "converted")
	script := filepath.Join(guest.Root(), "docs", "at-scale", "convert.py")
	python := filepath.Join(pythonTools(t, "internal/tools/spark-requirements.txt"), "python")
	cmd := exec.Command(python, append([]string{script, "--run", "first", "-o", converted, "--memtrace", command()},
		traces...)...)
	cmd.Env = append(os.Environ(), "PYSPARK_PYTHON="+python)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "64 of 64 traces are in ") {
		t.Fatalf("%v\n%s", err, out)
	}
	return converted
}
