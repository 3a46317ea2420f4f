//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/cuda"
)

const cupy = "cupy-cuda12x==12.3.0"

// CuPy has a pool of its own over the driver's memory, which the driver level must show as the driver does.
func TestCuPy(t *testing.T) {
	t.Parallel()
	r := program{framework: cupy, args: []string{"cupy_arrays.py", "--memory-stats", "STATS"}}.record(t)
	compareAccounts(t, r)
	rep := jsonReport(t, r.trace, "--at", "mark:stats")
	if rep.Driver.AllocCount == 0 || rep.Process.Ended != "clean" || !rep.Health.Complete {
		t.Errorf("the report says: %s", excerpt(rep))
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

// Whatever pool CuPy uses, the trace has what the pool reports as held or, where the driver keeps the pool, as in use,
// to the byte; every block is CuPy's and has the program's line, and pinned memory is separate.
func TestCuPyPools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pool, counter string
		mem           cuda.MemoryKind
	}{
		{"default", "held", cuda.MemoryDevice},
		{"managed", "held", cuda.MemoryManaged},
		{"async", "used", cuda.MemoryAsync},
		{"none", "arrays", cuda.MemoryDevice},
	} {
		t.Run(c.pool, func(t *testing.T) {
			t.Parallel()
			r := program{framework: cupy, args: []string{"cupy_pools.py", "--pool", c.pool, "--memory-stats",
				"STATS"}}.record(t)
			compareAccounts(t, r)
			counters := r.counters(t)["0"]
			everywhere := map[uint64]blockOf{}
			for _, blocks := range liveAt(t, r.trace, "stats") {
				for address, b := range blocks {
					everywhere[address] = b
				}
			}
			held := sum(everywhere, c.mem)
			equal(t, "what the pool has", held, number(t, counters, c.counter))
			equal(t, "pinned memory", sum(everywhere, cuda.MemoryHost), number(t, counters, "pinned"))
			if held == 0 || len(everywhere) < 5 {
				t.Errorf("%d blocks", len(everywhere))
			}
			if c.mem == cuda.MemoryManaged { // does not occupy the device, and so has no category
				return
			}
			p := byLibraries(t, r.trace, "--at", "mark:stats")
			only(t, p, "CuPy")
			equal(t, "CuPy at the mark", under(p.Categories[0], "CuPy"), held)
			if text := memtrace(t, "report", "--by", "site", "--at", "mark:stats", r.trace); !strings.Contains(text,
				"cupy_pools.py:49 work") {
				t.Errorf("no line of the program in\n%s", text)
			}
		})
	}
}

// CuPy releases its pool's idle blocks before it gives up: one OOM, with the line of the request. What its own limit
// refuses never reaches the driver.
func TestCuPyOutOfMemory(t *testing.T) {
	t.Parallel()
	r := program{framework: cupy, args: []string{"cupy_pools.py", "--limit", "10000000"}}.record(t)
	if want := "refused: device\nrefused: limit\n"; r.stdout != want {
		t.Fatalf("the program said %q", r.stdout)
	}
	rep := jsonReport(t, r.trace)
	if rep.OOM.Count != 1 {
		t.Fatalf("%d events", rep.OOM.Count)
	}
	e := rep.OOM.Events[0]
	equal(t, "requested", e.RequestedBytes, 1<<40)
	// The dropped array of 300,000 numbers, in CuPy's units of 512 bytes.
	equal(t, "given back in between", e.ReleasedBytes, (300_000*8+511)/512*512)
	if !strings.Contains(e.Site, "cupy_pools.py:35 fill") || e.Outcome != "failed" {
		t.Errorf("event %+v", e)
	}
}

// A rule about a tag that precedes those about libraries wins over them, whether the program's own call set the tag or
// CuPy's NVTX.
func TestTagsBeforeLibraries(t *testing.T) {
	t.Parallel()
	r := program{framework: cupy, args: []string{"cupy_pools.py", "--memory-stats", "STATS"}}.record(t)
	file := filepath.Join(t.TempDir(), "mine.toml")
	own :=
		"[[rule]]\ncategory = \"Solver\"\ntag = \"solve\"\n\n[[rule]]\ncategory = \"Input data\"\ntag = \"inputs\"\n\n"
	if err := os.WriteFile(file, []byte(strings.Replace(memtrace(t, "rules", "libraries"), "[[rule]]", own+"[[rule]]",
		1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := jsonReport(t, r.trace, "--rules", file, "--at", "mark:stats")
	only(t, p, "Solver", "Input data")
	libraries, c := byLibraries(t, r.trace, "--at", "mark:stats").Categories[0], p.Categories[0]
	equal(t, "both tags against the library", under(c, "Solver")+under(c, "Input data"), under(libraries, "CuPy"))
	if under(c, "Solver") == 0 || under(c, "Input data") == 0 {
		t.Errorf("categories %+v", c.Rows)
	}
}
