package symbol

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"memtrace/internal/guest"
	"memtrace/trace"
)

// command runs a program that the tests need and returns what it prints.
func command(t testing.TB, stdin string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// builds caches compiled programs by command line: the tests need the same few again and again.
var builds struct {
	sync.Mutex
	folder string
	files  map[string]string
}

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "memtrace-symbol-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	builds.folder, builds.files = folder, make(map[string]string)
	status := m.Run()
	os.RemoveAll(folder)
	os.Exit(status)
}

// compiled builds one of the sources in testdata and returns the path of a copy that belongs to the test.
func compiled(t testing.TB, compiler, source string, flags ...string) string {
	t.Helper()
	guest.Tool(t, compiler, "--version")
	builds.Lock()
	defer builds.Unlock()
	line := strings.Join(append([]string{compiler, source}, flags...), " ")
	built := builds.files[line]
	if built == "" {
		folder, err := os.MkdirTemp(builds.folder, "")
		if err != nil {
			t.Fatal(err)
		}
		built = filepath.Join(folder, strings.TrimSuffix(source, filepath.Ext(source))+".out")
		command(t, "", compiler, append([]string{filepath.Join("testdata", source), "-o", built}, flags...)...)
		builds.files[line] = built
	}
	return copyOf(t, built)
}

// moduleOf describes an object file as a trace would, loaded at base.
func moduleOf(t testing.TB, path string, base uint64) trace.Module {
	t.Helper()
	im, err := openImage(path)
	if err != nil {
		t.Fatal(err)
	}
	defer im.close()
	return trace.Module{ID: 1, Start: base, End: base + 1<<40, Base: base, Path: path, BuildID: im.id,
		Size: uint64(im.size), ModTime: im.mtime}
}

// resolverOf returns a resolver for one object file loaded at base.
func resolverOf(t testing.TB, path string, base uint64, o Options) *Resolver {
	t.Helper()
	var tables trace.Tables
	tables.AddModule(moduleOf(t, path, base))
	return New(&tables, trace.Info{}, o)
}

// copyOf copies a file into a folder of its own, under the same name.
func copyOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if err := os.WriteFile(out, data, 0o700); err != nil {
		t.Fatal(err)
	}
	return out
}
