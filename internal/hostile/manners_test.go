package hostile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/spool"
)

// Endings that the harness (endings_test.go) covers only in part.

// A program with a file of its own in the place of standard error, and a library that logs much: none of it is in the
// file.
func TestForeignStderr(t *testing.T) {
	t.Parallel()
	run{program: endings(t), args: []string{"data-stderr"}, env: []string{"MEMTRACE_LOG=debug"}}.both(t, "").only(t)
}

// _exit in a signal handler, in the middle of anything: what was counted is there.
func TestEndInHandler(t *testing.T) {
	t.Parallel()
	for range 5 {
		got := run{program: endings(t), args: []string{"_exit-in-handler"}}.both(t, "")
		text, err := os.ReadFile(filepath.Join(got.dir, "count"))
		if err != nil {
			t.Fatal(err)
		}
		counted := int(binary.LittleEndian.Uint64(text))
		if n := got.only(t).allocations(ownSize); counted == 0 || n < counted || n > counted+1 {
			t.Errorf("%d allocations in the trace, the program counted %d", n, counted)
		}
	}
}

// A hundred processes at once, all under one name that must not be replaced, and with their spools in one folder; under
// names of their own they are an ending.
func TestHundredProcesses(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"one name": nil, "forced": {"MEMTRACE_FORCE=1"}, "spools": {"MEMTRACE_SPOOL_DIR=spools"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := run{program: endings(t), args: []string{"hundred"},
				env: append(env, "MEMTRACE_OUTPUT=memtrace.one.bin")}.both(t, "this trace goes to")
			want := remains{traces: 100}
			// one that ended before another began is replaced, as requested
			if name == "forced" {
				want.traces = min(len(got.traces(t)), 100)
			}
			want.check(t, got)
			if left, _ := os.ReadDir(filepath.Join(got.dir, "spools")); len(left) != 0 {
				t.Errorf("%d spools are left", len(left))
			}
		})
	}
}

// A program that replaces itself keeps pid and start time: two traces, the first of a program that is gone.
func TestExec(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{nil, {"MEMTRACE_FORCE=1"}} {
		got := run{program: endings(t), args: []string{"exec-self"}, env: env}.both(t, "this trace goes to")
		ended := map[string]int{}
		for _, path := range got.traces(t) {
			r := read(t, path)
			ended[r.ended]++
			if r.allocations(firstSize) != 100 || r.lost != 0 {
				t.Errorf("%s: %d allocations of 100, %d lost", filepath.Base(path), r.allocations(firstSize), r.lost)
			}
		}
		if len(ended) != 2 || ended[spool.EndedClean] != 1 || ended[spool.EndedKilled] != 1 {
			t.Errorf("ended %v", ended)
		}
	}
}

// A runtime that gets no more memory ends the process, by SIGABRT, without a word. The recording must go on without it,
// and everything must be in the spool.
func TestRuntimeCannotContinue(t *testing.T) {
	t.Parallel()
	got := run{program: endings(t), args: []string{"nothing-later"}}.both(t, outspoken["nothing-later"])
	leaves["nothing-later"].check(t, got)
	if r := read(t, traceIn(t, got.dir)); !strings.Contains(r.info["drain"], "could not go on") {
		t.Errorf("the trace says about its drainer: %q", r.info["drain"])
	}
}

func TestErrnoKept(t *testing.T) {
	t.Parallel()
	got := run{program: endings(t), args: []string{"errno"}}.both(t, "")
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
