package hostile

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
)

// ownPool is what a program counts of one of its pools: blocks, their bytes, and what it took from the driver.
type ownPool struct{ blocks, bytes, taken uint64 }

// TestPools: what the program's own pools allocate is reported to the byte as the program itself counts it, from all
// threads and through resets; what they took from the driver is theirs, and no other memory is.
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
					held := pool.bytes
					if level == report.LevelDriver {
						held = pool.taken
					} else if sum.blocks += pool.blocks; row.AllocCount-row.FreeCount != pool.blocks {
						t.Errorf("%s: %d blocks, want %d", name, row.AllocCount-row.FreeCount, pool.blocks)
					}
					if row.LiveBytes != held {
						t.Errorf("%s at level %s: %d bytes, want %d", name, level, row.LiveBytes, held)
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

// TestPoolIsDividedByCallers: a C++ program takes all of its memory in one function of its pool, which it does not
// report. The first screen shows which of its functions made the pool allocate how much, and the JSON report to the
// byte.
func TestPoolIsDividedByCallers(t *testing.T) {
	t.Parallel()
	guest.Tool(t, "g++", "--version")
	program := compile(t, "arena", []string{"testdata/guest/arena.cc"}, withDriver(t)...)
	got := run{program: program, preload: []string{""}}.do(t)
	var s report.Summary
	runJSON(t, &s, "report", "--json", got.traces(t)[0])
	d := s.Division
	if got.exit != 0 || d == nil || d.By != report.ByCaller || !strings.Contains(d.Site, "Arena::grow") {
		t.Fatalf("exit %d, %+v", got.exit, d)
	}
	rows := make(map[string]uint64)
	for _, row := range d.Rows {
		// of guest/arena.cc:60 (anonymous namespace)::cache
		name := row.Key[strings.LastIndex(row.Key, ":")+1:]
		rows[name] = row.Bytes
	}
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	for _, line := range lines {
		var client string
		var taken uint64
		if _, err := fmt.Sscan(line, &client, &taken); err != nil || rows[client] != taken {
			t.Errorf("%q; the report says %v", line, rows)
		}
	}
	screen, err := exec.Command(command(t), "report", got.traces(t)[0]).Output()
	if err != nil || len(rows) != len(lines) || !bytes.Contains(screen, []byte("Callers of ")) ||
		!bytes.Contains(screen, []byte("::weights")) {
		t.Errorf("%v\n%s", rows, screen)
	}
}

// TestCallersWhenMemoryRanOut: the same where the device is full: the report is of that moment.
func TestCallersWhenMemoryRanOut(t *testing.T) {
	t.Parallel()
	guest.Tool(t, "g++", "--version")
	program := compile(t, "arena", []string{"testdata/guest/arena.cc"}, withDriver(t)...)
	got := run{program: program, env: []string{"NULLCUDA_MEM=50M"}, preload: []string{""}}.do(t)
	screen, err := exec.Command(command(t), "report", got.traces(t)[0]).Output()
	if want := regexp.MustCompile(`(?s)Out of memory.*Callers of .*Arena::grow.*::weights +36\.0 MiB +72\.0%.*` +
		`::cache +14\.0 MiB +28\.0%`); got.exit != 3 || err != nil || !want.Match(screen) {
		t.Errorf("exit %d, %v\n%s", got.exit, err, screen)
	}
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
