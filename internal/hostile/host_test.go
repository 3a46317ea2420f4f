// Package hostile holds tests of the preloaded library inside programs that are not written for it: each program runs
// with and without the library on the null GPU, and must behave the same.
package hostile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"memtrace/internal/guest"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// library returns the built library: MEMTRACE_LIBRARY, or the one in build.
func library(t testing.TB) string {
	t.Helper()
	return built(t, os.Getenv("MEMTRACE_LIBRARY"), "build/libmemtrace.so", "make lib")
}

// nullGPU returns the folder of the null GPU's libraries.
func nullGPU(t testing.TB) string {
	t.Helper()
	path := built(t, "", "build/nullcuda/lib/libcuda.so.1", "make nullcuda")
	built(t, "", "build/nullcuda/lib/libcudart.so.13", "make nullcuda")
	return filepath.Dir(path)
}

func built(t testing.TB, path, standard, target string) string {
	t.Helper()
	if path == "" {
		path = filepath.Join(guest.Root(), standard)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run `%s` first", err, target)
	}
	return path
}

// compile builds a guest and returns its path.
func compile(t *testing.T, name string, sources []string, flags ...string) string {
	t.Helper()
	return guest.Compile(t, name, sources, append(flags, "-I"+filepath.Join(guest.Root(), "testdata/guest"), "-ldl",
		"-lpthread")...)
}

// withDriver are the flags that link a guest with the null driver.
func withDriver(t *testing.T) []string { return []string{"-L" + nullGPU(t), "-lcuda"} }

// run is how a program is started.
type run struct {
	program string
	args    []string
	env     []string
	dir     string   // "" for a fresh one that every user may write to
	preload []string // "" is the library
	shell   string   // runs before the program in the same process: "ulimit ..."
}

// result is what a program did.
type result struct {
	dir            string
	exit           int // status, or 128 + signal
	stdout, stderr string
}

// do runs the program, with the library if preload is set.
func (r run) do(t *testing.T) result {
	t.Helper()
	if r.dir == "" {
		r.dir = open(t)
	}
	env := r.environment(t)
	args := append([]string{r.program}, r.args...)
	if r.shell != "" || len(r.preload) > 0 {
		// The preload is set by the shell, so that only the program has it.
		args = append([]string{"/bin/sh", "-c", r.shell + "\nexec env \"$@\"", "sh"}, append(env, args...)...)
	} else {
		args = append([]string{"env"}, append(env, args...)...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = r.dir
	var out bytes.Buffer
	errs, err := os.CreateTemp(t.TempDir(), "stderr") // which the program may look into
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	cmd.Stdout, cmd.Stderr = &out, errs
	err = finish(cmd)
	said, _ := os.ReadFile(errs.Name())
	got := result{dir: r.dir, stdout: out.String(), stderr: string(said)}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		status := failed.Sys().(syscall.WaitStatus)
		got.exit = status.ExitStatus()
		if status.Signaled() {
			got.exit = 128 + int(status.Signal())
		}
	} else if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", r.program, r.args, err, got.stdout, got.stderr)
	}
	return got
}

// plainly runs the program without the library. The outcome is the same each time, so once is enough.
func (r run) plainly(t *testing.T) result {
	t.Helper()
	r.preload = slices.DeleteFunc(slices.Clone(r.preload), func(path string) bool { return path == "" })
	key := fmt.Sprintf("%q", r)
	if known, ok := plainRuns.Load(key); ok && r.dir == "" {
		return known.(result)
	}
	got := r.do(t)
	plainRuns.Store(key, got)
	return got
}

var plainRuns sync.Map // results by run

func (r run) environment(t *testing.T) []string {
	env := append([]string{"LD_LIBRARY_PATH=" + nullGPU(t), "NULLCUDA_SHARED=none"}, r.env...)
	if len(r.preload) == 0 {
		return env
	}
	paths := make([]string, len(r.preload))
	for i, path := range r.preload {
		paths[i] = path
		if path == "" {
			paths[i] = library(t)
		}
	}
	return append(env, "LD_PRELOAD="+strings.Join(paths, ":"))
}

// both runs the program without and with the library, compares exit status, stdout and stderr, and returns the run with
// the library. If own is not empty, the library may print its own lines on stderr, own among them.
func (r run) both(t *testing.T, own string) result {
	t.Helper()
	want := r.plainly(t)
	if r.preload == nil {
		r.preload = []string{""}
	}
	got := r.do(t)
	if got.exit != want.exit || got.stdout != want.stdout {
		t.Errorf("%s %v: without the library exit %d, stdout\n%s\nwith it exit %d, stdout\n%s\nstderr\n%s",
			filepath.Base(r.program), r.args, want.exit, want.stdout, got.exit, got.stdout, got.stderr)
	}
	if left := strip(got.stderr, own); !same(left, want.stderr) {
		t.Errorf("%s %v: stderr without the library\n%s\nwith it\n%s", filepath.Base(r.program), r.args, want.stderr,
			got.stderr)
	}
	return got
}

var address = regexp.MustCompile(`0x[0-9a-f]+`)

// same compares messages; where the loader put things does not count.
func same(a, b string) bool {
	return address.ReplaceAllString(a, "0x") == address.ReplaceAllString(b, "0x")
}

// strip takes the library's own lines out of a text, where they may be there.
func strip(text, own string) string {
	if own == "" {
		return text
	}
	var kept strings.Builder
	for _, line := range strings.SplitAfter(text, "\n") {
		if !strings.HasPrefix(line, "memtrace: ") || !strings.Contains(text, own) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// traces lists the traces that a run left.
func (r result) traces(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(r.dir, "memtrace.*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// recorded is a trace read to its end.
type recorded struct {
	events []trace.Event
	tables *trace.Tables
	info   trace.Info
	ended  string
	lost   uint64
	health trace.Health
}

func read(t *testing.T, path string) recorded {
	t.Helper()
	source, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	r := recorded{tables: source.Tables(), info: source.Info()}
	for {
		batch, err := source.ReadBatch()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		r.events = append(r.events, batch...)
	}
	records, rings, _ := source.Lost()
	r.lost, r.ended, r.health = records+rings, source.Ended(), source.Health()
	return r
}

// only returns the one trace of a run that ended by itself: whole, and without a spool.
func (r result) only(t *testing.T) recorded {
	t.Helper()
	paths := r.traces(t)
	if len(paths) != 1 {
		t.Fatalf("%d traces, want one\n%s", len(paths), r.stderr)
	}
	if _, err := os.Lstat(paths[0] + spool.Extension); err == nil {
		t.Errorf("the spool is still there")
	}
	got := read(t, paths[0])
	if got.ended != spool.EndedClean {
		t.Errorf("the trace says that the run ended as %q", got.ended)
	}
	if got.lost != 0 {
		t.Errorf("%d events were lost", got.lost)
	}
	return got
}

// count returns how many events satisfy a condition.
func (r recorded) count(is func(trace.Event) bool) (n int) {
	for _, e := range r.events {
		if is(e) {
			n++
		}
	}
	return n
}

// allocations returns how many successful allocations have the size.
func (r recorded) allocations(size uint64) int {
	return r.count(func(e trace.Event) bool { return e.Kind == trace.EventAlloc && e.Status == 0 && e.Size == size })
}
