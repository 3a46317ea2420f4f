package symbol

import (
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// mapped reports whether a file is mapped into this process, as the kernel sees it.
func mapped(t *testing.T, path string) bool {
	t.Helper()
	list, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(list), path)
}

// Mapped files are unmapped by Close, and also if Close is never called.
func TestFilesAreUnmapped(t *testing.T) {
	path := compiled(t, "rustc", "inlined.rs", "-O", "-g")
	pcs := pcsOf(spread(slices.Sorted(maps.Keys(functionNames(t, path))), 50))
	r := resolverOf(t, path, 0, Options{Sources: []string{}})
	r.Warm(pcs)
	if !mapped(t, path) {
		t.Fatal("the test's file is not large enough to be mapped")
	}
	want := slices.Clone(r.Native(pcs[0]))
	r.Close()
	if mapped(t, path) {
		t.Error("still mapped after Close")
	}
	if got := r.Native(pcs[0]); !slices.Equal(got, want) {
		t.Errorf("after Close: %+v, want %+v", got, want)
	}

	r = resolverOf(t, path, 0, Options{Sources: []string{}})
	r.Warm(pcs)
	runtime.KeepAlive(r)
	r = nil
	for range 1000 { // the cleanup runs some time after the collection that finds it
		runtime.GC()
		if !mapped(t, path) {
			return
		}
	}
	t.Error("still mapped when nothing refers to the resolver any more")
}
