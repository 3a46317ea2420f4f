// Package guest compiles the C programs that tests run: recorders made of the library's own C half without Go, and
// small CUDA guests.
package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Root returns the repository's root folder.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Compile builds an executable from the sources, which are paths below the root or file contents that end in a newline,
// and returns its path. Flags are passed to the compiler after the sources. The test fails if the compiler does.
func Compile(t testing.TB, name string, sources []string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	out := filepath.Join(dir, name)
	args := []string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-o", out}
	for i, source := range sources {
		path := filepath.Join(Root(), source)
		if strings.HasSuffix(source, "\n") {
			path = filepath.Join(dir, fmt.Sprintf("source%d.c", i))
			if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, path)
	}
	args = append(args, "-I"+filepath.Join(Root(), "cshim"))
	args = append(args, flags...)
	if text, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return out
}

// recorders holds what Recorder built: it takes seconds, and the tests of a package want the same program again and
// again.
var recorders struct {
	sync.Mutex
	built map[string][]byte
}

// Recorder builds an executable from the library's C half and one main program: it records into a spool like a traced
// process, but nothing drains it.
func Recorder(t testing.TB, source string, flags ...string) string {
	t.Helper()
	recorders.Lock()
	defer recorders.Unlock()
	key := strings.Join(append([]string{source}, flags...), "\x00")
	if program, known := recorders.built[key]; known {
		path := filepath.Join(t.TempDir(), "recorder")
		if err := os.WriteFile(path, program, 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := buildRecorder(t, source, flags)
	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if recorders.built == nil {
		recorders.built = make(map[string][]byte)
	}
	recorders.built[key] = program
	return path
}

func buildRecorder(t testing.TB, source string, flags []string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(), "cshim", "*", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no C sources found: %v", err)
	}
	sources := []string{source}
	for _, file := range files {
		if filepath.Base(filepath.Dir(file)) == "ctest" {
			continue
		}
		relative, err := filepath.Rel(Root(), file)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, relative)
	}
	return Compile(t, "recorder", append(sources, adapterScripts(t)), append(flags, "-ldl", "-lpthread")...)
}

// adapterScripts returns the C file that the build makes of the scripts in cshim/adapters.
func adapterScripts(t testing.TB) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "scripts.c")
	command := exec.Command("go", "run", "./internal/genadapters", "-out", out)
	command.Dir = Root()
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("genadapters: %v\n%s", err, text)
	}
	code, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(code)
}
