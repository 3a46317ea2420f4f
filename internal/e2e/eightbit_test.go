//go:build e2e

package e2e

import (
	"path/filepath"
	"testing"

	"memtrace/internal/guest"
)

// TestEightBitAdam: what the real bitsandbytes keeps for each parameter has its names, to the byte.
func TestEightBitAdam(t *testing.T) {
	p := program{framework: torch27, python: interpreter(t, "3.11"), args: []string{"names_eight_bit.py"}}
	p.env = []string{"PYTHONPATH=" + p.packageFolder(t, "bitsandbytes.txt") + ":" + filepath.Join(guest.Root(), "python")}
	r, marks := runNames(t, p)
	compareNames(t, r, marks)
}
