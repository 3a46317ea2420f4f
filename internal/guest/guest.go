// Package guest compiles the C programs that tests run: recorders made of the library's own C half without Go, and
// small CUDA guests. Each is compiled once and kept in build/guests, in a folder named by a hash of all that it is made
// of: a second run of the tests compiles nothing.
package guest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// Cache is the folder of what tests fetch once for all checkouts: $MEMTRACE_CACHE, else memtrace in the user's cache.
func Cache() (string, error) {
	if cache := os.Getenv("MEMTRACE_CACHE"); cache != "" {
		return cache, nil
	}
	caches, err := os.UserCacheDir()
	return filepath.Join(caches, "memtrace"), err
}

var root = findRoot()

// findRoot looks for the folder that has go.mod from the test's own on, in which a test begins; "" elsewhere.
func findRoot() string {
	at, err := os.Getwd()
	for err == nil && at != "/" {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at
		}
		at = filepath.Dir(at)
	}
	return ""
}

// Root returns the repository's root folder.
func Root() string {
	if root == "" {
		panic("tests begin in a folder of the repository")
	}
	return root
}

// Tool returns the path of a program that the test needs. The test is skipped where there is none, or where it does not
// run with the arguments: the launcher of a version manager without a version, a tracer that may not trace.
func Tool(t testing.TB, name string, try ...string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	if text, err := exec.Command(path, try...).CombinedOutput(); err != nil {
		t.Skipf("%s %v: %v\n%s", name, try, err, text)
	}
	return path
}

// Compile builds an executable from the sources, which are paths below the root or file contents that end in a newline,
// and returns its path. C++ is recognized by its ending, .cc. Flags are passed to the compiler after the sources. The
// file is shared with other tests and processes, so it must not be changed. The test fails if the compiler does.
func Compile(t testing.TB, name string, sources []string, flags ...string) string {
	t.Helper()
	return CompileIn(t, filepath.Join(Root(), "build", "guests", key(name, sources, flags)), name, sources, flags...)
}

// CompileIn does so in a folder of the test's own, for a program that hangs on other folders of this run.
func CompileIn(t testing.TB, dir, name string, sources []string, flags ...string) string {
	t.Helper()
	out := filepath.Join(dir, name)
	unlock := lock(t, dir)
	defer unlock()
	if _, err := os.Stat(out); err == nil {
		return out
	}
	args := []string{"-o", out + ".new"}
	for i, source := range sources {
		switch path := filepath.Join(Root(), source); {
		case strings.HasSuffix(source, "\n"):
			path = filepath.Join(dir, fmt.Sprintf("source%d.c", i))
			if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
				t.Fatal(err)
			}
			args = append(args, path)
		case strings.HasSuffix(source, ".cc"):
			object := filepath.Join(dir, fmt.Sprintf("source%d.o", i))
			compiler(t, "g++", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c", path, "-o", object)
			args = append(args, object, "-lstdc++")
		default:
			args = append(args, path)
		}
	}
	args = append(append([]string{"-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror"}, args...),
		"-I"+filepath.Join(Root(), "cshim"))
	compiler(t, "gcc", append(args, flags...)...)
	if err := os.Rename(out+".new", out); err != nil {
		t.Fatal(err)
	}
	return out
}

func compiler(t testing.TB, name string, args ...string) {
	t.Helper()
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, text)
	}
}

// lock makes a folder and keeps everybody else out of it until the returned function is called.
func lock(t testing.TB, dir string) func() {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Lock(t, filepath.Join(dir, "lock"))
}

// Lock waits for a file's lock among all test processes and returns the function that gives it back.
func Lock(t testing.TB, path string) (unlock func()) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() { file.Close() }
}

// key hashes everything that a program is made of: compiler, flags, sources, all headers that they could include, and
// what they are linked with.
func key(name string, sources, flags []string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %q %q %s", name, sources, flags, common())
	for _, source := range sources {
		if text, err := os.ReadFile(filepath.Join(Root(), source)); err == nil {
			fmt.Fprintf(sum, "%d %s", len(text), text)
		}
	}
	for _, flag := range flags {
		paths := []string{flag}
		if folder, ok := strings.CutPrefix(flag, "-L"); ok {
			paths, _ = filepath.Glob(filepath.Join(folder, "*.so*"))
		}
		for _, path := range paths {
			fmt.Fprint(sum, contents(path))
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// common is what is the same for all programs.
var common = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, name := range []string{"gcc", "g++"} {
		text, err := exec.Command(name, "--version").Output()
		fmt.Fprintf(sum, "%s %v", text, err)
	}
	for _, folder := range []string{"testdata/guest", "cshim"} {
		filepath.WalkDir(filepath.Join(Root(), folder), func(path string, _ fs.DirEntry, err error) error {
			if ending := filepath.Ext(path); err == nil && (ending == ".h" || ending == ".def") {
				fmt.Fprint(sum, path, contents(path))
			}
			return nil
		})
	}
	return string(sum.Sum(nil))
})

var hashes sync.Map // of files, by path

// contents is a hash of a file, empty without one.
func contents(path string) string {
	if known, ok := hashes.Load(path); ok {
		return known.(string)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	hashes.Store(path, string(sum[:]))
	return string(sum[:])
}

// Recorder builds an executable from the library's C half and one main program: it records into a spool like a traced
// process, but nothing drains it.
func Recorder(t testing.TB, source string) string {
	t.Helper()
	unlock := lock(t, filepath.Join(Root(), "build", "guests"))
	err := makeArchive()
	unlock()
	if err != nil {
		t.Fatal(err)
	}
	return Compile(t, "recorder", []string{source}, "-Wl,--whole-archive", filepath.Join(Root(), archive),
		"-Wl,--no-whole-archive", "-ldl", "-lpthread")
}

// archive has the library's C half.
const archive = "build/cshim/libcshim.a"

var makeArchive = sync.OnceValue(func() error {
	command := exec.Command("make", "--silent", archive)
	command.Dir, command.Env = Root(), append(os.Environ(), "MAKEFLAGS=") // no part of the make that started the tests
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", command, err, text)
	}
	return nil
})
