//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"memtrace/internal/guest"
)

// TestEightBitAdam: what the real bitsandbytes keeps for each parameter has its names, to the byte. What it keeps for
// itself, two tables of 256 numbers, is not a parameter.
func TestEightBitAdam(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"names_eight_bit.py"}}
	p.env = []string{"PYTHONPATH=" + p.packageFolder(t, "bitsandbytes.txt") + ":" +
		filepath.Join(guest.Root(), "python")}
	r, marks := runNames(t, p)
	compareNames(t, r, marks)
	count := map[string]int{}
	for _, p := range trainingOf(t, r.trace).Parameters {
		count[p.Category]++
		if p.Category == "optimizer" {
			equal(t, "bytes of "+p.Name+" itself", p.Bytes+p.Gradient, 0)
			equal(t, "states of "+p.Name, addUp([]uint64{p.States[0].Bytes, p.States[1].Bytes}), 2*256*4)
		}
	}
	if count["parameter"] != 4 || count["optimizer"] != 1 {
		t.Errorf("parameters by category: %v", count)
	}
}
