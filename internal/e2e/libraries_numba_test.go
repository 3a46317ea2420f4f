//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"memtrace/cuda"
)

const numba = "numba-cuda==0.30.4"

// The driver's blocks are the arrays that Numba counts as allocated and those whose frees it has put off, to the byte,
// each kind of memory for itself.
func TestNumba(t *testing.T) {
	t.Parallel()
	// At its exit Numba resets the device's context, with which all blocks die: there would be no call to compare.
	r := program{framework: numba, args: []string{"numba_arrays.py", "--memory-stats",
		"STATS", "--exit-now"}}.record(t)
	compareAccounts(t, r)
	counters := r.counters(t)["0"]
	everywhere := map[uint64]blockOf{}
	for _, blocks := range liveAt(t, r.trace, "stats") {
		for address, b := range blocks {
			everywhere[address] = b
		}
	}
	put := number(t, counters, "put_off")
	if put == 0 {
		t.Error("Numba put no free off")
	}
	equal(t, "device memory", sum(everywhere, cuda.MemoryDevice), number(t, counters, "AutoFreePointer")+put)
	equal(t, "managed memory", sum(everywhere, cuda.MemoryManaged), number(t, counters, "ManagedMemory"))
	// Three pinned arrays of 5000 numbers, which Numba does not count.
	equal(t, "pinned memory", sum(everywhere, cuda.MemoryHost), number(t, counters, "MappedMemory")+3*40_000)
	p := byLibraries(t, r.trace, "--at", "mark:stats")
	only(t, p, "Numba")
	equal(t, "Numba at the mark", under(p.Categories[0], "Numba"), sum(everywhere, cuda.MemoryDevice))
	sites := memtrace(t, "report", "--by", "site", "--at", "mark:stats", r.trace)
	for _, want := range []string{"numba_arrays.py:29 main", "numba_arrays.py:30 main", "numba_arrays.py:34 main"} {
		if !strings.Contains(sites, want) {
			t.Errorf("no %q in\n%s", want, sites)
		}
	}
}
