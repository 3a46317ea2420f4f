//go:build aarch64

package hostile

import (
	"os/exec"
	"path/filepath"
	"testing"

	"memtrace/analyzer"
	"memtrace/internal/guest"
	"memtrace/internal/spool"
)

// A library for aarch64 loads, records a C program exactly, with stacks, and writes a trace that is read here. `make
// test-aarch64` builds what this runs: the library and the null driver.
func TestAarch64(t *testing.T) {
	for _, tool := range []string{"aarch64-linux-gnu-gcc", "qemu-aarch64"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%v; on Debian: apt-get install gcc-aarch64-linux-gnu qemu-user", err)
		}
	}
	built := filepath.Join(guest.Root(), "build", "aarch64")
	drivers, dir := filepath.Join(built, "lib"), t.TempDir()
	program := filepath.Join(dir, "totals")
	compiler := exec.Command("aarch64-linux-gnu-gcc", "-O2", "-g", "-o", program, "testdata/guest/totals.c",
		"-Itestdata/guest", "-L"+drivers, "-l:libcuda.so.1", "-pthread")
	compiler.Dir = guest.Root()
	if text, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	args := []string{"-L", "/usr/aarch64-linux-gnu", "-E", "LD_PRELOAD=" + filepath.Join(built, "libmemtrace.so"), "-E",
		"LD_LIBRARY_PATH=" + drivers, program}
	got := run{program: "qemu-aarch64", args: args, env: []string{"NULLCUDA_LOG=null.log"}, dir: dir}.do(t)
	if got.exit != 0 || got.stdout != "end\n" || got.stderr != "" {
		t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
	compareTotalsOf(t, got, "null.log")
	checkSites(t, got.traces(t)[0])
}

// TestAarch64Start: a program for aarch64 that loads the library by itself is recorded.
func TestAarch64Start(t *testing.T) {
	built := filepath.Join(guest.Root(), "build", "aarch64")
	drivers, dir := filepath.Join(built, "lib"), t.TempDir()
	program := filepath.Join(dir, "starts")
	compiler := exec.Command("aarch64-linux-gnu-gcc", "-O2", "-g", "-o", program, "testdata/guest/starts.c",
		"-Itestdata/guest", "-L"+drivers, "-l:libcuda.so.1", "-pthread", "-Wl,-z,now", "-Wl,-z,relro")
	compiler.Dir = guest.Root()
	if text, err := compiler.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for mode, size := range map[string]uint64{"linked": 12001, "used": 12003, "pointer": 12004, "fetched": 12005} {
		late := "0"
		if mode == "used" || mode == "fetched" {
			late = "1"
		}
		args := []string{"-L", "/usr/aarch64-linux-gnu", "-E", "LD_LIBRARY_PATH=" + drivers, program, mode,
			filepath.Join(built, "libmemtrace.so")}
		got := run{program: "qemu-aarch64", args: args}.do(t)
		if got.exit != 0 || got.stdout != "start "+late+"\nend\n" || got.stderr != "" {
			t.Fatalf("%s: exit %d\n%s%s", mode, got.exit, got.stdout, got.stderr)
		}
		if n := got.only(t).allocations(size); n != 1 {
			t.Errorf("%s: %d allocations", mode, n)
		}
	}
}

// checkSites checks that every allocation is that of the guest's function, inlined in its threads' one.
func checkSites(t *testing.T, path string) {
	t.Helper()
	source, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	s, err := analyzer.Summarize(source, analyzer.Options{Question: analyzer.Question{Groupings: []string{"function"}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range s.Groups {
		for _, row := range g.Rows {
			if g.Level == "driver" && row.Key != "make (guest/totals.c)" {
				t.Errorf("%d allocations by %q", row.AllocCount, row.Key)
			}
		}
	}
	if s.Driver.AllocCount == 0 || len(s.Groups) == 0 {
		t.Errorf("%+v, %d groups", s.Driver, len(s.Groups))
	}
}
