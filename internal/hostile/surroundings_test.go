package hostile

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/spool"
)

// Where the surroundings forbid a recording, the program runs on; where they cut it short, what was lost is counted.
func TestHardSurroundings(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, mode, shell, dir, says string
	}{
		{name: "no descriptors", mode: "nofile-all", says: "Too many open files"},
		{name: "no room at all", mode: "plain", dir: "/proc", says: "recording is off"},
		{name: "little address space", mode: "plain", shell: "ulimit -v 200000", says: "memtrace: "},
		{name: "hardly any address space", mode: "chdir", shell: "ulimit -v 60000", says: "memtrace: "},
		{name: "hardly any descriptors", mode: "plain", shell: "ulimit -n 5", says: "memtrace: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := run{program: endings(t), args: []string{c.mode}, shell: c.shell, dir: c.dir}.both(t, c.says)
			if strings.Contains(got.stderr, "fatal error") {
				t.Errorf("stderr:\n%s", got.stderr)
			}
		})
	}
}

// Nothing can be written where the trace, or only the spool, is to go: the program runs on, and one line reports it.
func TestReadOnlyDisk(t *testing.T) {
	t.Parallel()
	readOnly := mount(t, "tmpfs", "ro")
	run{program: endings(t), args: []string{"threads"}, dir: readOnly}.both(t, "recording is off: creating the trace "+
		readOnly)
	got := run{program: endings(t), args: []string{"threads"}, env: []string{"MEMTRACE_SPOOL_DIR=" + readOnly}}.both(t,
		"memtrace: ")
	if left, _ := os.ReadDir(got.dir); len(left) != 0 {
		t.Errorf("files were left: %v", left)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"64k", "1m", "2m"} {
		t.Run(size, func(t *testing.T) {
			full := mount(t, "tmpfs", "size="+size)
			got := run{program: endings(t), args: []string{"threads"}, dir: full}.both(t, "memtrace: ")
			if strings.Contains(got.stderr, "killed process") || strings.Count(got.stderr, "write ") > 1 {
				t.Errorf("a full disk is told of as something else, or twice:\n%s", got.stderr)
			}
			run{program: endings(t), args: []string{"threads"}, env: []string{"MEMTRACE_SPOOL_DIR=" + full}}.both(t,
				"memtrace: ")
		})
	}
}

// File systems that have files but no shared mapping of a file like ours: message queues cannot be mapped at all, huge
// pages only in whole ones.
func TestNoSharedMapping(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"mqueue", "hugetlbfs"} {
		t.Run(kind, func(t *testing.T) {
			dir := mount(t, kind, "defaults")
			got := run{program: endings(t), args: []string{"plain"},
				env: []string{"MEMTRACE_OUTPUT=" + filepath.Join(dir, "t")}}.both(t, "memtrace: ")
			if !strings.Contains(got.stderr, "recording is off") {
				t.Errorf("it should have said that nothing is recorded:\n%s", got.stderr)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "t*")); len(left) != 0 {
				t.Errorf("files were left: %v", left)
			}
			got = run{program: endings(t), args: []string{"plain"}, env: []string{"MEMTRACE_SPOOL_DIR=" + dir}}.both(t,
				"memtrace: ")
			if left, _ := os.ReadDir(got.dir); len(left) != 0 {
				t.Errorf("files were left: %v", left)
			}
		})
	}
}

// mount gives a test a file system of its own.
func mount(t *testing.T, kind, options string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a file system")
	}
	dir := t.TempDir()
	if text, err := exec.Command("mount", "-t", kind, "-o", options, kind, dir).CombinedOutput(); err != nil {
		t.Skipf("mount %s: %v %s", kind, err, text)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
	return dir
}

// Variables of other tools and of Go's own runtime, sense and nonsense: the program sees them unchanged, and the
// library does not read them.
func TestVariables(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{
		"bind now": {"LD_BIND_NOW=1"},
		"go": {"GOMEMLIMIT=junk", "GODEBUG=inittrace=1,schedtrace=1,gctrace=1", "GOGC=nonsense",
			"GOMAXPROCS=0", "GOTRACEBACK=crash"},
		"injections": {"NVTX_INJECTION64_PATH=/nothing/libnvtx.so", "CUDA_INJECTION64_PATH=/nothing/libinject.so",
			"NSYS_PROFILING_SESSION_ID=1", "CUPTI_LIB_PATH=/nothing"},
		"long":        {"MEMTRACE_OUTPUT=%e.%q{LONG}.bin", "LONG=" + strings.Repeat("x", 100000)},
		"loader":      {"LD_DEBUG=unused"},
		"no language": {"LC_ALL=nonsense", "LANGUAGE=?", "TZ=/dev/full"},
	} {
		t.Run(name, func(t *testing.T) {
			own := ""
			if name == "long" {
				own = "memtrace: "
			}
			run{program: "/bin/sh", args: []string{"-c", "env | grep -vE '^(LD_PRELOAD|PWD|OLDPWD|_)=' | sort"},
				env: env}.both(t, "")
			got := run{program: endings(t), args: []string{"plain"}, env: env}.both(t, own)
			if name != "long" && got.only(t).allocations(firstSize) != 100 {
				t.Error("the trace is not whole")
			}
		})
	}
}

// open makes a folder that other users may write to; the test's own folders are closed to them.
func open(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A user at the thread limit gets no thread of the library. All is in the spool if the limit was there first; with a
// later limit, the library has its threads already, also where other limits have prevented the drainer. With 40
// descriptors it runs, and is waited for.
func TestNoThreads(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	for shell, env := range map[string][]string{"ulimit -n 10": {"UNDRAINED=1"}, "ulimit -n 40": nil,
		"ulimit -d 100000": {"UNDRAINED=1"}} {
		t.Run(shell, func(t *testing.T) {
			got := run{program: endings(t), args: []string{"nproc-later"}, shell: shell, env: env}.both(t, "")
			r := read(t, got.traces(t)[0])
			if r.allocations(ownSize) != 100000 || r.lost != 0 || r.ended != spool.EndedClean {
				t.Errorf("%d allocations of 100000, %d lost, ended %s", r.allocations(ownSize), r.lost, r.ended)
			}
		})
	}
}

// Messages to a stderr without a reader do not end the program, whichever half writes them: this one makes the drainer
// fail.
func TestBrokenStderr(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reader.Close()
	defer writer.Close()
	cmd := exec.Command(endings(t), "fsize-later")
	cmd.Dir, cmd.Stderr = t.TempDir(), writer
	cmd.Env = append(os.Environ(), run{preload: []string{""}, env: []string{"MEMTRACE_LOG=debug"}}.environment(t)...)
	if err := finish(cmd); err != nil {
		t.Error(err)
	}
}

func TestDisabled(t *testing.T) {
	t.Parallel()
	got := run{program: endings(t), args: []string{"threads"}, env: []string{"MEMTRACE_DISABLE=1"}}.both(t, "")
	if left, _ := os.ReadDir(got.dir); len(left) != 0 {
		t.Errorf("files were left: %v", left)
	}
}

// The random ledger where its trace has little space or loses its folder: the program does what it does, and a trace
// that claims to be whole is.
func TestLedgerWithoutRoom(t *testing.T) {
	t.Parallel()
	l := ledgerRun{seed: 9, threads: 8, devices: 2, steps: 10000, words: []string{"ends"}, runtime: "12"}
	program := ledgerProgram(t, l.runtime)
	for _, size := range []string{"64k", "1m", "4m", "gone"} {
		t.Run(size, func(t *testing.T) {
			dir, full := t.TempDir(), ""
			if size == "gone" {
				full = filepath.Join(dir, "traces")
				if err := os.Mkdir(full, 0o700); err != nil {
					t.Fatal(err)
				}
			} else {
				full = mount(t, "tmpfs", "size="+size)
			}
			l.env = []string{"MEMTRACE_OUTPUT=" + filepath.Join(full, "memtrace.%e.%p.bin")}
			cmd := l.command(t, dir)
			var out strings.Builder
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for size == "gone" {
				if paths, _ := filepath.Glob(filepath.Join(full, "*.bin")); len(paths) == 2 {
					os.RemoveAll(full)
					break
				}
			}
			if err := cmd.Wait(); err != nil || out.String() != "end\n" {
				t.Fatalf("%v %q", err, out.String())
			}
			if _, err := os.Stat(full); size == "gone" && err == nil {
				t.Error("the folder came back")
			}
			for _, name := range []string{"book", "book.peer"} {
				book := readBook(t, program, filepath.Join(dir, name))
				paths, _ := filepath.Glob(filepath.Join(full, fmt.Sprintf("memtrace.*.%d.bin", book.Process)))
				for _, path := range paths {
					var r ledgerReport
					runJSON(t, &r, "report", "--json", path)
					t.Logf("%s: %d lost, complete %v", name, r.Lost, r.Health["complete"])
					if r.Health["complete"] == true {
						checkBook(t, book, path, filepath.Join(dir, fmt.Sprintf("null.%d.log", book.Process)), false)
					} else if r.Lost == 0 {
						t.Errorf("%s is not whole, and nothing was lost: %v", path, r.Health)
					}
				}
			}
		})
	}
}
