package hostile

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"memtrace/internal/guest"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// surroundings are the libraries that other tools preload, before memtrace's and after it. Each has its own constructor
// and destructor, which run at another time.
var surroundings = []struct {
	name, file string
	before     bool // the other library precedes memtrace's
	repeated   bool // again and again in the long form: what fails there fails by chance
}{
	{name: "alone"},
	{name: "libfaketime behind", file: "faketime/libfaketime.so.1", repeated: true},
	{name: "libfaketime before", file: "faketime/libfaketime.so.1", before: true, repeated: true},
	{name: "jemalloc", file: "libjemalloc.so.2", before: true},
	{name: "tcmalloc", file: "libtcmalloc_minimal.so.4", before: true},
}

// outspoken are the endings in which the library prints something by default, and nothing else may differ:
// docs/process-behaviour.md.
var outspoken = map[string]string{
	// no trace can be written, or no whole one
	"fsize": "limit on file size", "fsize-0": "limit on file size", "fsize-later": "memtrace: ",
	"fsize-later-ignored": "memtrace: ",
	"nproc":               "no thread for the drainer",
	"no-openat":           "recording is off",               // nothing can be written at all
	"dlmopen":             "past this library",              // a CUDA in a namespace of its own
	"nothing-later":       "the Go runtime could not go on", // a limit that cannot be foreseen
}

// selected run beside the other libraries in the short form, too: what touches threads, memory and time at the end.
var selected = []string{"plain", "none", "segv", "exit-thread", "_exit-atexit", "quick", "pthread-exit",
	"killed-thread", "exec-self", "forks", "vfork", "as-later", "threads", "sigprof", "terminate"}

// remains are what a mode leaves: traces that have the hundred allocations that each process begins with, and so many
// of the size that is the mode's own.
type remains struct {
	traces int // -1 none, 0 one
	killed bool
	first  int // in each trace: -1 none, 0 a hundred
	own    int // in each trace, -1 by chance
	spool  tri // whether it stays beside a trace that ended clean
}

type tri int

const (
	goes tri = iota
	stays
	may // rights, roots or limits change under a drainer that starts at the same time
)

const firstSize, ownSize = 777, 700 // testdata/guest/endings/endings.h

// leaves are the modes that leave anything else than one trace that ended clean, with nothing of the mode's own.
var leaves = map[string]remains{
	"segv": {killed: true}, "abort": {killed: true}, "stack-overflow": {killed: true},
	"stack-overflow-thread": {killed: true}, "term": {killed: true}, "pipe": {killed: true}, "cpu": {killed: true},
	"exec": {killed: true}, "exec-bare": {killed: true}, "exec-waits": {killed: true}, "kill-group": {killed: true},
	"exit-group-call": {killed: true}, "strict-killed": {killed: true}, "killed-thread": {killed: true},
	"killed-process": {killed: true}, "trapped": {killed: true}, "terminate": {killed: true},

	"none": {traces: -1}, "delete": {traces: -1}, "fsize": {traces: -1}, "fsize-0": {traces: -1},
	"no-openat":   {traces: -1},
	"fork-before": {traces: 2}, "race": {traces: 30, first: -1, own: 8}, "hundred": {traces: 100},
	"last-error": {first: -1}, "dlmopen": {first: -1, spool: may}, "dlclose": {first: 2000},

	"_exit-in-handler": {own: -1}, "term-at-exit": {own: 60000}, "quick": {own: 5}, "atexit": {own: 10},
	"close-from": {own: 40100}, "container": {own: 40100}, "container-old": {own: 40100, spool: stays},
	"service": {own: 40100}, "no-counter-later": {own: 1000},
	"nofile-all": {own: 20000}, "threads": {own: 64 * 16 * 5}, "thousand": {own: 1000},
	"handler-allocates": {own: 1000}, "stop": {own: -1},

	"chroot": {spool: may}, "chroot-later": {own: 40000, spool: may}, "setuid": {spool: may},
	"setuid-later": {own: 20000, spool: may}, "seteuid": {spool: may}, "own-pids": {spool: may},
	"as": {spool: stays}, "as-later": {spool: may}, "data-later": {spool: may}, "nothing-later": {spool: stays},
	"nofile": {spool: stays}, "nofile-later": {spool: may}, "fsize-later": {spool: stays},
	"fsize-later-ignored": {spool: stays}, "nproc": {spool: stays}, "nproc-later": {own: 100000, spool: may},
	"seccomp-eperm": {spool: stays}, "seccomp-kill": {spool: stays}, "no-openat-later": {spool: may},
	"no-openat-tsync": {spool: may},
}

func endings(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(guest.Root(), "testdata/guest/endings")
	files, err := filepath.Glob(filepath.Join(folder, "*.c*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	for i, file := range files {
		files[i] = filepath.Join("testdata/guest/endings", filepath.Base(file))
	}
	guest.Tool(t, "g++", "--version")
	return compile(t, "endings", files, append(withDriver(t), filepath.Join(nullGPU(t), "libcudart.so.13"))...)
}

func modesOf(t *testing.T, program string) []string {
	t.Helper()
	return strings.Fields(run{program: program}.do(t).stdout)
}

// other finds a library that the distribution has.
func other(t *testing.T, file string) string {
	t.Helper()
	triplet := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	for _, folder := range []string{"/usr/lib/" + triplet, "/usr/lib64", "/usr/lib"} {
		if path := filepath.Join(folder, file); exists(path) {
			return path
		}
	}
	t.Skipf("%s is not installed", filepath.Base(file))
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Every end of a program, alone and beside other preloaded libraries: output, errors and exit status are those of the
// run without the library, and the trace has everything. It ended by SIGSEGV in a third of the runs before libfaketime,
// whose destructor unmaps what its fstat waits on: ours came after it. A first thread that a filter killed left status
// 0. A limit on address space, set later, took the program's memory or its life. ENDINGS=N runs all of it, N times
// where chance decides.
func TestEndings(t *testing.T) {
	t.Parallel()
	program := endings(t)
	modes := modesOf(t, program)
	if len(modes) < 115 {
		t.Fatalf("the guest has %d modes", len(modes))
	}
	page, err := os.ReadFile(filepath.Join(guest.Root(), "docs/process-behaviour.md"))
	if err != nil || !strings.Contains(string(page), fmt.Sprintf("The %d endings of", len(modes))) {
		t.Errorf("docs/process-behaviour.md does not say that there are %d endings (%v)", len(modes), err)
	}
	repeats, _ := strconv.Atoi(os.Getenv("ENDINGS"))
	for _, s := range surroundings {
		t.Run(s.name, func(t *testing.T) {
			preload := []string{""}
			if s.file != "" {
				path := other(t, s.file)
				preload = map[bool][]string{true: {path, ""}, false: {"", path}}[s.before]
				t.Cleanup(sweepFaketime)
			}
			wanted, times := modes, 1
			if repeats == 0 && s.file != "" {
				wanted = selected
			}
			if s.repeated && repeats > 0 {
				times = repeats
			}
			for _, mode := range wanted {
				t.Run(mode, func(t *testing.T) {
					t.Parallel()
					for range times {
						got := run{program: program, args: []string{mode}, preload: preload}.both(t, outspoken[mode])
						if mode != "exec-self" { // two traces of different ends: TestExec
							leaves[mode].check(t, got)
						}
					}
				})
			}
		})
	}
}

// check compares what a mode has left.
func (want remains) check(t *testing.T, got result) {
	t.Helper()
	paths := got.traces(t)
	if count := max(cmp.Or(want.traces, 1), 0); len(paths) != count {
		t.Errorf("%d traces, want %d\n%s", len(paths), count, got.stderr)
	}
	ended, first := spool.EndedClean, max(cmp.Or(want.first, 100), 0)
	if want.killed {
		ended, want.spool = spool.EndedKilled, stays
	}
	for _, path := range paths {
		r, name := read(t, path), filepath.Base(path)
		if r.ended != ended || r.lost != 0 {
			t.Errorf("%s: ended %s, want %s; %d lost", name, r.ended, ended, r.lost)
		}
		own := r.count(func(e trace.Event) bool { return e.Kind == trace.EventAlloc && e.Size == ownSize })
		if n := r.allocations(firstSize); n != first || own != want.own && want.own >= 0 {
			t.Errorf("%s: %d first allocations and %d of the mode's own, want %d and %d", name, n, own, first, want.own)
		}
		if left := exists(path + spool.Extension); want.spool != may && left != (want.spool == stays) {
			t.Errorf("%s: its spool is left: %v", name, left)
		}
	}
}

// sweepFaketime removes the shared memory that libfaketime leaves in processes that are killed, with the library and
// without.
func sweepFaketime() {
	files, _ := filepath.Glob("/dev/shm/*faketime_*")
	for _, file := range files {
		pid, err := strconv.Atoi(file[strings.LastIndexByte(file, '_')+1:])
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			os.Remove(file)
		}
	}
}
