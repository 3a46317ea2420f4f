//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"memtrace/analyzer/report"
)

// csvSums adds up tables with Python's csv module.
const csvSums = `
import collections, csv, json, os, sys
def table(name):
    with open(os.path.join(sys.argv[1], name + ".csv"), newline="") as file:
        return list(csv.DictReader(file))
owners = collections.defaultdict(lambda: [0, 0, 0])
for row in table("owners"):
    sums = owners[row["by"] + " " + row["level"]]
    for i, column in enumerate(("peak_bytes", "live_bytes", "alloc_count")):
        sums[i] += int(row[column])
iterations = table("iterations")
divided = [sum(int(value) for column, value in row.items() if column.startswith("peak_bytes: ")) for row in iterations]
json.dump({
    "owners": owners,
    "ledgers": {row["by"]: sum(int(other["bytes"]) for other in table("ledgers") if other["by"] == row["by"]) for row in table("ledgers")},
    "categories": sum(int(row["bytes"]) for row in table("categories")),
    "totals": {row["level"]: int(row["peak_bytes"]) for row in table("totals") if row["device"] == "all"},
    "iterations": [int(row["peak_bytes"]) for row in iterations], "divided": divided,
    "parameters": len(table("parameters")), "samples": len(table("device_samples")),
}, sys.stdout)
`

// TestExportCSV: the tables of a training run, read by Python's csv module, add up to the report's figures.
func TestExportCSV(t *testing.T) {
	t.Parallel()
	extended(t)
	r := gpt2Training.record(t)
	folder := filepath.Join(t.TempDir(), "tables")
	memtrace(t, "-q", "export", "csv", "-o", folder, r.trace)
	var stderr bytes.Buffer
	read := exec.Command(filepath.Join(venv(t, torch27, ""), "bin", "python"), "-c", csvSums, folder)
	read.Stderr = &stderr
	out, err := read.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	var sums struct {
		Owners              map[string][3]float64
		Ledgers, Totals     map[string]float64
		Categories          float64
		Iterations, Divided []float64
		Parameters, Samples int
	}
	if err := json.Unmarshal(out, &sums); err != nil {
		t.Fatal(err)
	}
	rep := jsonReport(t, r.trace)
	levels := map[string]report.Level{"framework": rep.Framework, "driver": rep.Driver}
	for name, level := range levels {
		same(t, name, sums.Totals[name], float64(level.PeakBytes))
		for _, by := range []string{"site", "module", "tag", "operator", "category"} {
			got := sums.Owners[by+" "+name]
			same(t, by+" "+name+" at the peak", got[0], float64(level.PeakBytes))
			same(t, by+" "+name+" at the end", got[1], float64(level.LiveBytes))
			same(t, by+" "+name+" allocations", got[2], float64(level.AllocCount))
		}
	}
	same(t, "categories", sums.Categories, float64(rep.Framework.PeakBytes))
	for by, whole := range sums.Ledgers {
		same(t, "the ledger by "+by, whole, sums.Ledgers["site"])
	}
	highest := 0.0
	for i, peak := range sums.Iterations {
		same(t, "an iteration's categories", sums.Divided[i], peak)
		highest = max(highest, peak)
	}
	same(t, "the highest iteration", highest, float64(rep.Framework.PeakBytes))
	if sums.Parameters == 0 || sums.Samples == 0 || len(sums.Iterations) < 3 {
		t.Errorf("%d parameters, %d samples, %d iterations", sums.Parameters, sums.Samples, len(sums.Iterations))
	}
}
