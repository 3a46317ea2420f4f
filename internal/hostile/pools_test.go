package hostile

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// ownPool is what a program counts of one of its pools: blocks, their bytes, and what it took from the driver.
type ownPool struct{ blocks, bytes, taken uint64 }

// TestPools: what pools of the program's own hand out is reported to the byte as the program itself counts it, from all
// threads and through resets; what they took from the driver is theirs, and what lies beside them is not.
func TestPools(t *testing.T) {
	t.Parallel()
	program := compile(t, "pools", []string{"testdata/guest/pools.c"}, append(withDriver(t), withHeader())...)
	for _, threads := range []string{"1", "4"} {
		t.Run(threads, func(t *testing.T) {
			t.Parallel()
			r := run{program: program, args: []string{threads}, preload: []string{""}}
			if plain := r.plainly(t); plain.exit != 0 {
				t.Fatalf("without the library: exit %d\n%s", plain.exit, plain.stderr)
			}
			got := r.do(t)
			want, peak := countedPools(t, got)
			var s report.Summary
			runJSON(t, &s, "report", "--json", "--by", "pool", got.traces(t)[0])
			var sum ownPool
			for _, level := range []string{report.LevelFramework, report.LevelDriver} {
				rows := s.Group("pool", level).Rows
				for name, pool := range want {
					row := groupRow(rows, "pool "+name)
					bytes := pool.bytes
					if level == report.LevelDriver {
						bytes = pool.taken
					} else if sum.blocks += pool.blocks; row.AllocCount-row.FreeCount != pool.blocks {
						t.Errorf("%s: %d blocks, want %d", name, row.AllocCount-row.FreeCount, pool.blocks)
					}
					if row.LiveBytes != bytes {
						t.Errorf("%s at level %s: %d bytes, want %d", name, level, row.LiveBytes, bytes)
					}
				}
			}
			for _, pool := range want {
				sum.bytes, sum.taken = sum.bytes+pool.bytes, sum.taken+pool.taken
			}
			d := s.Devices[0]
			if d.Framework.LiveBytes != sum.bytes || d.Framework.PeakBytes != peak ||
				d.ReservedBytesCurrent != sum.taken || d.ReservedBytesPeak != sum.taken ||
				d.Driver.LiveBytes != sum.taken+3<<20 {
				t.Errorf("%+v of %d bytes, peak %d, taken %d", d, sum.bytes, peak, sum.taken)
			}
			if h := s.Health; h.UnmatchedFrees+h.DisplacedBlocks > 0 {
				t.Errorf("%+v", h)
			}
		})
	}
}

// countedPools reads what pools.c prints.
func countedPools(t *testing.T, got result) (pools map[string]ownPool, peak uint64) {
	t.Helper()
	pools = make(map[string]ownPool)
	for _, line := range strings.Split(strings.TrimSpace(got.stdout), "\n") {
		var name string
		var p ownPool
		if n, _ := fmt.Sscan(line, &name, &p.blocks, &p.bytes, &p.taken); n == 4 {
			pools[name] = p
		} else {
			peak = p.blocks
		}
	}
	if got.exit != 0 || len(pools) == 0 || peak == 0 {
		t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
	return pools, peak
}

func groupRow(rows []report.Row, key string) (found report.Row) {
	for _, row := range rows {
		if row.Key == key {
			found = row
		}
	}
	return found
}

// withHeader lets a guest include memtrace.h.
func withHeader() string { return "-I" + filepath.Join(guest.Root(), "cshim/include") }
