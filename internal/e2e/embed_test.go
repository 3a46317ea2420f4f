//go:build e2e

package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// An interpreter that a C program loads after its first CUDA call is found, in threads that C made, too, and left alone
// once it has ended.
func TestStacksOfEmbeddedPython(t *testing.T) {
	t.Parallel()
	driver := filepath.Join(guest.Root(), "build", "nullcuda", "lib", "libcuda.so.1")
	program := guest.Compile(t, "embed", []string{"testdata/python/embed.c"}, driver, "-ldl", "-lpthread", "-rdynamic")
	embedded := 0
	for _, version := range []string{"3.8", "3.9", "3.10", "3.11", "3.12", "3.13"} {
		t.Run(version, func(t *testing.T) {
			python := interpreter(t, version)
			out, err := exec.Command(python, "-c",
				"import os, sys, sysconfig as s; print(os.path.join(s.get_config_var('LIBDIR'), s.get_config_var('INSTSONAME'))); print(sys.base_prefix)").Output()
			if err != nil {
				t.Fatal(err)
			}
			where := strings.Split(string(out), "\n")
			if _, err := os.Stat(where[0]); err != nil || !strings.Contains(where[0], ".so") {
				t.Skipf("%s was built without a shared library", python)
			}
			embedded++
			trc := filepath.Join(t.TempDir(), "t.bin")
			cmd := exec.Command(program, where[0])
			// which frees what it does not own when it starts again, with and without the library
			if version != "3.12" {
				cmd.Args = append(cmd.Args, "again")
			}
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Dir(driver), "LD_PRELOAD="+library(),
				"MEMTRACE_OUTPUT="+trc, "NULLCUDA_SHARED=none", "PYTHONHOME="+where[1])
			if text, err := cmd.CombinedOutput(); err != nil || len(text) != 0 {
				t.Fatalf("%v\n%s", err, text)
			}
			checkEmbedded(t, trc, len(cmd.Args) > 2)
		})
	}
	if embedded == 0 {
		t.Skip("no interpreter with a shared library")
	}
}

// checkEmbedded compares the Python functions on the stack of each allocation with those that its size encodes.
func checkEmbedded(t *testing.T, path string, again bool) {
	t.Helper()
	// comprehensions are functions before 3.12
	outer := [][]string{{"inner", "<listcomp>", "outer", "<module>"}, {"inner", "outer", "<module>"}}
	// 1500: by its native stack the interpreter is met for the first time
	want := map[uint64][][]string{1000: {nil}, 1500: append(outer, nil), 2000: outer, 3000: outer, 4000: {nil},
		5000: {nil}, 6000: outer}
	events, r := readEvents(t, path)
	seen := map[uint64]int{}
	for _, e := range events {
		allowed, known := want[e.Size]
		if !known || e.Kind.String() != "alloc" {
			continue
		}
		seen[e.Size]++
		var s stacks
		s.takePython(r.Tables(), e.PyStack)
		var names []string
		for _, frame := range s.python {
			names = append(names, frame.name)
		}
		if !slices.ContainsFunc(allowed, func(list []string) bool { return slices.Equal(list, names) }) {
			t.Errorf("%d bytes come from %q", e.Size, names)
		}
		if len(r.Tables().Stack(e.Stack)) < 2 {
			t.Errorf("%d bytes have the native stack %x", e.Size, r.Tables().Stack(e.Stack))
		}
	}
	wanted := map[uint64]int{1000: 1, 1500: 1, 2000: 2, 3000: 1, 4000: 1, 5000: 1}
	if again {
		wanted[6000] = 1
	}
	if !maps.Equal(seen, wanted) {
		t.Errorf("allocations by size: %v", seen)
	}
}
