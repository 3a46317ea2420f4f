package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
	"memtrace/internal/spool"
)

// A library that allocates before main and after it: in a constructor that runs before ours, and in a destructor that
// would run after ours.
func TestEarlyAndLate(t *testing.T) {
	t.Parallel()
	early := compile(t, "libearly.so", []string{"testdata/guest/early.c"},
		append([]string{"-shared", "-fPIC"}, withDriver(t)...)...)
	program := compile(t, "early", []string{"void use_early(void);\nint main(void) { use_early(); return 6; }\n"},
		append([]string{early}, withDriver(t)...)...)
	got := run{program: program}.both(t, "").only(t)
	for size, want := range map[uint64]int{4000: 1, 4001: 1, 1000: 1, 5000: 2} {
		if n := got.allocations(size); n != want {
			t.Errorf("%d allocations of %d bytes, want %d", n, size, want)
		}
	}
	if left := replay(got.events).Live("device"); left.Count != 0 {
		t.Errorf("%d blocks are live at the end: their frees were not seen", left.Count)
	}
}

func TestReopenedDriver(t *testing.T) {
	t.Parallel()
	got := run{program: routes(t), args: []string{"reopen"}}.both(t, "").only(t)
	for i := range uint64(10) {
		if got.allocations(41000+i) != 1 {
			t.Errorf("the allocation of %d bytes was seen %d times", 41000+i, got.allocations(41000+i))
		}
	}
}

// A host that is itself Go with cgo keeps its signals and its runtime; memtrace's does not start, and everything stays
// in the spool. Go ends processes by itself, so how this one ended is unknown.
func TestGoHost(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "gohost")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join(guest.Root(), "testdata/guest/gohost")
	build.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_LDFLAGS=-L"+nullGPU(t))
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	got := run{program: program}.both(t, "")
	if !strings.Contains(got.stdout, "recovered:") {
		t.Errorf("stdout\n%s", got.stdout)
	}
	if r := read(t, got.traces(t)[0]); r.allocations(1000) != 400 || r.lost != 0 || r.ended != spool.EndedKilled {
		t.Errorf("%d allocations of 400, %d lost, ended %s", r.allocations(1000), r.lost, r.ended)
	}
}

// Nothing can be preloaded into a static program, and nothing breaks.
func TestStaticProgram(t *testing.T) {
	t.Parallel()
	program := compile(t, "static", []string{"#include <stdio.h>\nint main(void) { puts(\"static\"); return 3; }\n"},
		"-static")
	if got := (run{program: program}).both(t, ""); got.exit != 3 {
		t.Errorf("exit %d", got.exit)
	}
}

// The loader takes no library from the environment of a user into a program that has more rights than the user.
func TestSetuidProgram(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to make a program setuid")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("setpriv is not there")
	}
	dir := open(t)
	copyFile(t, filepath.Join(nullGPU(t), "libcuda.so.1"), filepath.Join(dir, "libcuda.so.1"), 0o755)
	source :=
		"#include <stdio.h>\n#include <unistd.h>\n#include \"cuda.h\"\nint main(void) { uint64_t p; void *c; printf(\"%d %d\\n\", getuid(), geteuid());\n" +
			"return cuInit(0) || cuCtxCreate_v2(&c, 0, 0) || cuMemAlloc_v2(&p, 1000) ? 9 : 4; }\n"
	program := guest.CompileIn(t, dir, "setuid", []string{source}, append([]string{"-Wl,-rpath," + dir,
		"-I" + filepath.Join(guest.Root(), "testdata/guest")}, withDriver(t)...)...)
	if err := os.Chmod(program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	got := run{program: "setpriv", args: []string{"--reuid", "65534", "--regid", "65534", "--clear-groups", program},
		dir: dir}.do(t)
	if got.exit != 4 || got.stdout != "65534 0\n" {
		t.Skipf("setuid programs have no effect here: exit %d, %s%s", got.exit, got.stdout, got.stderr)
	}
	got = run{program: "setpriv", args: []string{"--reuid", "65534", "--regid", "65534", "--clear-groups", program},
		dir: dir}.both(t, "")
	if left := got.traces(t); len(left) != 0 {
		t.Errorf("traces %v", left)
	}
}

// A program of another C library: there is no CUDA for musl, so the library loads, does nothing, and the program runs.
func TestMusl(t *testing.T) {
	t.Parallel()
	compiler := guest.Tool(t, "musl-gcc", "--version")
	program := filepath.Join(t.TempDir(), "musl")
	source := filepath.Join(guest.Root(), "testdata/guest/musl.c")
	if text, err := exec.Command(compiler, "-O2", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, mode := range []string{"return", "exit", "_exit", "quick_exit", "fork", "dlsym", "threads", "getenv"} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: program, args: []string{mode}}.both(t, "")
			if !strings.HasPrefix(got.stdout, mode+" works") {
				t.Errorf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
			}
		})
	}
}
