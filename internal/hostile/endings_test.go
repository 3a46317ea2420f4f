package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"memtrace/internal/guest"
)

// surroundings are the libraries that other tools preload, before ours and behind it. Each has a beginning and an end
// of its own, at another time than ours.
var surroundings = []struct {
	name, file string
	before     bool // the other library stands before ours
	repeated   bool // again and again in the long form: what fails there fails by chance
}{
	{name: "alone"},
	{name: "libfaketime behind", file: "faketime/libfaketime.so.1", repeated: true},
	{name: "libfaketime before", file: "faketime/libfaketime.so.1", before: true, repeated: true},
	{name: "jemalloc", file: "libjemalloc.so.2", before: true},
	{name: "tcmalloc", file: "libtcmalloc_minimal.so.4", before: true},
}

// outspoken are the endings in which the library says something of its own by default, and nothing else may differ:
// docs/manners.md.
var outspoken = map[string]string{
	// no trace can be written, or no whole one
	"fsize": "limit on file size", "fsize-0": "limit on file size", "fsize-later": "memtrace: ",
	"fsize-later-ignored": "memtrace: ",
	"no-openat":           "recording is off",               // nothing can be written at all
	"dlmopen":             "past this library",              // a CUDA in a namespace of its own
	"nothing-later":       "the Go runtime could not go on", // a limit that nobody sees coming
}

// selected run beside the other libraries in the short form, too: what touches threads, memory and time at the end.
var selected = []string{"plain", "none", "segv", "exit-thread", "_exit-atexit", "quick", "pthread-exit",
	"killed-thread", "exec-self", "forks", "vfork", "as-later", "threads", "sigprof", "terminate"}

func endings(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(guest.Root(), "testdata/guest/endings")
	files, err := filepath.Glob(filepath.Join(folder, "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	var sources []string
	for _, file := range files {
		sources = append(sources, filepath.Join("testdata/guest/endings", filepath.Base(file)))
	}
	compiler, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("there is no g++ for the guest's C++ half")
	}
	object := filepath.Join(t.TempDir(), "unwindings.o")
	if text, err := exec.Command(compiler, "-O2", "-Wall", "-Wextra", "-Werror", "-c",
		filepath.Join(folder, "unwindings.cc"), "-o", object).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return compile(t, "endings", sources, append(withDriver(t), object, filepath.Join(nullGPU(t), "libcudart.so.13"),
		"-lstdc++")...)
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
// run without the library. It ended by SIGSEGV in a third of the runs before libfaketime, whose destructor unmaps what
// its fstat waits on: ours came after it. A first thread that a filter killed left status 0. A limit on address space,
// set later, took the program's memory or its life. ENDINGS=N runs all of it, N times where chance decides.
func TestEndings(t *testing.T) {
	program := endings(t)
	modes := modesOf(t, program)
	if len(modes) < 85 {
		t.Fatalf("the guest has %d modes", len(modes))
	}
	page, err := os.ReadFile(filepath.Join(guest.Root(), "docs/manners.md"))
	if err != nil || !strings.Contains(string(page), fmt.Sprintf("The %d endings of", len(modes))) {
		t.Errorf("docs/manners.md does not say that there are %d endings (%v)", len(modes), err)
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
			wanted := modes
			if repeats == 0 && s.file != "" {
				wanted = selected
			}
			times := 1
			if s.repeated && repeats > 0 {
				times = repeats
			}
			for _, mode := range wanted {
				t.Run(mode, func(t *testing.T) {
					for range times {
						run{program: program, args: []string{mode}, preload: preload, dir: open(t)}.both(t,
							outspoken[mode])
					}
				})
			}
		})
	}
}

// sweepFaketime removes the shared memory that libfaketime leaves behind in processes that are killed, with the library
// and without.
func sweepFaketime() {
	files, _ := filepath.Glob("/dev/shm/*faketime_*")
	for _, file := range files {
		pid, err := strconv.Atoi(file[strings.LastIndexByte(file, '_')+1:])
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			os.Remove(file)
		}
	}
}
