//go:build e2e

package e2e

import (
	"os"
	"testing"
)

const cupy = "cupy-cuda12x==12.3.0"

// CuPy has a pool of its own over the driver's memory, which the driver level must show as the driver does.
func TestCuPy(t *testing.T) {
	r := program{framework: cupy, args: []string{"cupy_arrays.py", "--memory-stats", "STATS"}}.run(t)
	compareAccounts(t, r)
	rep := jsonReport(t, r.trace, "--at", "mark:stats")
	if rep.Driver.AllocCount == 0 || rep.Process.Ended != "clean" || !rep.Health.Complete {
		t.Errorf("report %+v", rep)
	}
	if _, err := os.Stat(r.stats); err != nil {
		t.Fatal(err)
	}
	for index, c := range r.counters(t) {
		for _, at := range rep.At.Devices {
			if index == "0" && at.Index == 0 {
				equal(t, "what the pool holds", at.Driver.LiveBytes, number(t, c, "held"))
			}
		}
	}
	if len(rep.At.Devices) == 0 {
		t.Error("no device at the mark")
	}
}
