package hostile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/trace"
	"memtrace/trace/spool"
)

// Modes of the guest that end by themselves and leave one whole trace, with the number of allocations of 1000 bytes in
// it.
func TestCleanEnds(t *testing.T) {
	for mode, want := range map[string]int{
		"plain": 100, "vfork": 200, "vfork-leave": 400, "spawn": 200, "fork-after": 200, "fork-busy": 100,
		"threads": 64 * 16 * 5, "small-start": 100,
		"dispositions": 100, "sigchld": 100, "closefrom": 100 + 40000 + 100, "daemon": 100 + 100, "chdir": 100,
		"gone": 100, "clearenv": 100,
		"nofile-later": 20100, "_exit": 100, "_Exit": 100, "quick_exit": 105, "_exit-busy": 100, "_exit-twice": 100,
		"segv-handled": 100, "pthread_exit": 100,
		"term": 60000, "atexit": 110,
	} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: manners(t), args: []string{mode}}.both(t, "").only(t)
			if n := got.allocations(1000); n != want {
				t.Errorf("%d allocations in the trace, want %d", n, want)
			}
		})
	}
}

// A program with a file of its own in the place of standard error, and a library that has much to say: nothing of it
// stands in the file.
func TestForeignStderr(t *testing.T) {
	got := run{program: manners(t), args: []string{"stderr"}, env: []string{"MEMTRACE_LOG=debug"}}.both(t, "").only(t)
	if n := got.allocations(1000); n != 200 {
		t.Errorf("%d allocations in the trace, want 200", n)
	}
}

// How often these call depends on the clock; at least they do as often as they must.
func TestCleanEndsAfterMany(t *testing.T) {
	for mode, want := range map[string]int{"signals": 20000, "sigprof": 40000, "stop": 20000} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: manners(t), args: []string{mode}}.both(t, "").only(t)
			if n := got.allocations(1000); n < want {
				t.Errorf("%d allocations in the trace, want %d or more", n, want)
			}
		})
	}
}

// _exit in a signal handler, in the middle of anything: what was counted is there.
func TestEndInHandler(t *testing.T) {
	for range 5 {
		got := run{program: manners(t), args: []string{"_exit-in-handler"}}.both(t, "")
		text, err := os.ReadFile(filepath.Join(got.dir, "count"))
		if err != nil {
			t.Fatal(err)
		}
		counted := int(binary.LittleEndian.Uint64(text))
		if n := got.only(t).allocations(1000); counted == 0 || n < counted || n > counted+1 {
			t.Errorf("%d allocations in the trace, the program counted %d", n, counted)
		}
	}
}

// Ends that no library survives: the exit status is the program's, and everything is in the spool.
func TestSuddenEnds(t *testing.T) {
	for _, mode := range []string{"abort", "segv", "pipe"} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: manners(t), args: []string{mode}}.both(t, "")
			paths := got.traces(t)
			if len(paths) != 1 {
				t.Fatalf("%d traces", len(paths))
			}
			r := read(t, paths[0])
			if n := r.allocations(1000); n != 100 || r.lost != 0 || r.ended != spool.EndedKilled {
				t.Errorf("%d allocations of 100, %d lost, ended %s", n, r.lost, r.ended)
			}
		})
	}
}

// A child leaves its parent's trace alone. If the parent has made no call, the child's are recorded in a trace of its
// own; otherwise CUDA refuses them.
func TestForks(t *testing.T) {
	for mode, want := range map[string]struct {
		parent, child, children int
		ended                   string
	}{
		"fork-before": {100, 10, 1, spool.EndedClean}, "fork-calls": {100, 0, 0, spool.EndedClean},
		"clone":      {200, 0, 0, ""}, // which ends by a system call that nobody sees
		"kill-group": {100, 0, 0, spool.EndedKilled},
	} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: manners(t), args: []string{mode}}.both(t, "")
			parents, children := 0, 0
			for _, path := range got.traces(t) {
				r := read(t, path)
				allocs := r.count(func(e trace.Event) bool { return e.Kind == trace.EventAlloc })
				switch own := r.allocations(1000); {
				case own == want.parent && allocs == own:
					parents++
				case own == 0 && allocs == want.child:
					children++
				default:
					t.Errorf("%s: %d allocations, %d of the parent's kind", filepath.Base(path), allocs, own)
				}
				if want.ended != "" && r.ended != want.ended {
					t.Errorf("%s: ended %s, want %s", filepath.Base(path), r.ended, want.ended)
				}
			}
			if parents != 1 || children != want.children {
				t.Errorf("%d traces of the parent, %d of children, want 1 and %d", parents, children, want.children)
			}
		})
	}
}

// Eight threads make the first call of their process at once, again and again: each process starts once and loses
// nothing.
func TestRaceToStart(t *testing.T) {
	got := run{program: manners(t), args: []string{"race"}}.both(t, "")
	got.each(t, got.traces(t), 30, 888, 8)
}

// each demands that there are so many whole traces with so many allocations of a size in each.
func (r result) each(t *testing.T, paths []string, want int, size uint64, allocations int) {
	t.Helper()
	if len(paths) != want {
		t.Errorf("%d traces of %d processes\n%s", len(paths), want, r.stderr)
	}
	for _, path := range paths {
		if got := read(t, path); got.allocations(size) != allocations || got.ended != spool.EndedClean {
			t.Errorf("%s: %d allocations of %d, ended %s", filepath.Base(path), got.allocations(size), allocations,
				got.ended)
		}
	}
}

// A hundred processes at once, each under a name of its own, all under one name that must not be replaced, and with
// their spools in one folder.
func TestHundredProcesses(t *testing.T) {
	for name, env := range map[string][]string{
		"by pid":   nil,
		"one name": {"MEMTRACE_OUTPUT=memtrace.one.bin"},
		"forced":   {"MEMTRACE_OUTPUT=memtrace.one.bin", "MEMTRACE_FORCE=1"},
		"spools":   {"MEMTRACE_OUTPUT=memtrace.one.bin", "MEMTRACE_SPOOL_DIR=spools"},
	} {
		t.Run(name, func(t *testing.T) {
			own := ""
			if env != nil {
				own = "this trace goes to"
			}
			got := run{program: manners(t), args: []string{"hundred"}, env: env}.both(t, own)
			paths := got.traces(t)
			// one that ended before another began is replaced, as was asked for
			if name == "forced" && len(paths) < 100 {
				got.each(t, paths, len(paths), 2000, 10)
				return
			}
			got.each(t, paths, 100, 2000, 10)
			if left, _ := os.ReadDir(filepath.Join(got.dir, "spools")); len(left) != 0 {
				t.Errorf("%d spools are left", len(left))
			}
		})
	}
}

// A program that replaces itself keeps pid and start time: two traces, the first of a program that is gone.
func TestExec(t *testing.T) {
	for _, env := range [][]string{nil, {"MEMTRACE_FORCE=1"}} {
		got := run{program: manners(t), args: []string{"exec"}, env: env}.both(t, "this trace goes to")
		ended := map[string]int{}
		for _, path := range got.traces(t) {
			r := read(t, path)
			ended[r.ended]++
			if r.allocations(1000) != 100 {
				t.Errorf("%s: %d allocations of 100", filepath.Base(path), r.allocations(1000))
			}
		}
		if len(ended) != 2 || ended[spool.EndedClean] != 1 || ended[spool.EndedKilled] != 1 {
			t.Errorf("ended %v", ended)
		}
	}
}

func TestQuietThreads(t *testing.T) {
	got := run{program: manners(t), args: []string{"quiet"}}.both(t, "").only(t)
	if n := got.allocations(777); n != 1000 {
		t.Errorf("%d of 1000 threads' allocations", n)
	}
}

func TestErrnoKept(t *testing.T) {
	got := run{program: manners(t), args: []string{"errno"}}.both(t, "")
	if !strings.Contains(got.stdout, "0 wrong") {
		t.Errorf("errno changed:\n%s", got.stdout)
	}
	apis := map[string]bool{}
	for _, e := range got.only(t).events {
		apis[e.API.String()] = true
	}
	if len(apis) < 12 {
		t.Errorf("only %d kinds of calls were seen: %v", len(apis), apis)
	}
}
