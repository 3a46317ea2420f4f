package hostile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/trace"
	"memtrace/trace/spool"
)

// Modes of the guest that end by themselves and leave one whole trace, with the number of allocations of 1000 bytes in it.
func TestCleanEnds(t *testing.T) {
	for mode, want := range map[string]int{
		"plain": 100, "vfork": 200, "threads": 40 * 16 * 5, "dispositions": 100, "closefrom": 100 + 40000 + 100, "daemon": 100 + 100, "chdir": 100,
		"gone": 100, "clearenv": 100, "fork-after": 200, "pthread_exit": 100, "_exit": 100, "segv-handled": 100,
	} {
		t.Run(mode, func(t *testing.T) {
			got := run{program: manners(t), args: []string{mode}}.both(t, "").only(t)
			if n := got.allocations(1000); n != want {
				t.Errorf("%d allocations in the trace, want %d", n, want)
			}
		})
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

// A child that makes a call has a trace of its own and leaves its parent's alone.
func TestForks(t *testing.T) {
	for mode, want := range map[string]struct{ parent, child, children int }{
		"fork-before": {100, 10, 1}, "fork-calls": {100, 1, 20}, "clone": {200, 1, 2},
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
			}
			if parents != 1 || children != want.children {
				t.Errorf("%d traces of the parent, %d of children, want 1 and %d", parents, children, want.children)
			}
		})
	}
}

// Eight threads make the first call of their process at once, again and again: each process starts once and loses nothing.
func TestRaceToStart(t *testing.T) {
	got := run{program: manners(t), args: []string{"race"}}.both(t, "")
	paths := got.traces(t)
	if len(paths) != 30 {
		t.Errorf("%d traces of 30 processes", len(paths))
	}
	for _, path := range paths {
		if r := read(t, path); r.allocations(888) != 8 || r.ended != spool.EndedClean {
			t.Errorf("%s: %d allocations of 8, ended %s", filepath.Base(path), r.allocations(888), r.ended)
		}
	}
}

func TestQuietThreads(t *testing.T) {
	got := run{program: manners(t), args: []string{"quiet"}}.both(t, "").only(t)
	if n := got.allocations(777); n != 1000 {
		t.Errorf("%d of 1000 threads' allocations", n)
	}
}

func TestSignals(t *testing.T) {
	got := run{program: manners(t), args: []string{"signals"}}.both(t, "").only(t)
	if n := got.allocations(1000); n < 20000 {
		t.Errorf("%d allocations in the trace, want 20000 or more", n)
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

// Where the surroundings forbid a recording, the program runs on; where they cut it short, what was lost is counted.
func TestHardSurroundings(t *testing.T) {
	cases := []struct {
		name, mode, shell, dir, says string
	}{
		{name: "no descriptors", mode: "nofile", says: "Too many open files"},
		{name: "small files", mode: "fsize", says: "limit on file size"},
		{name: "small files later", mode: "fsize-later", says: "file too large"},
		{name: "no room at all", mode: "plain", dir: "/proc", says: "recording is off"},
		{name: "little address space", mode: "plain", shell: "ulimit -v 200000", says: "memtrace: "},
		{name: "hardly any address space", mode: "plain", shell: "ulimit -v 60000", says: "memtrace: "},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := run{program: manners(t), args: []string{c.mode}, shell: c.shell, dir: c.dir}.both(t, c.says)
			if strings.Contains(got.stderr, "fatal error") {
				t.Errorf("stderr:\n%s", got.stderr)
			}
		})
	}
}

// After these, files can no longer be opened by name, and the spool grows all the same.
func TestUnreachableFiles(t *testing.T) {
	t.Run("deleted", func(t *testing.T) {
		got := run{program: manners(t), args: []string{"delete"}}.both(t, "")
		if left, _ := os.ReadDir(got.dir); len(left) != 0 {
			t.Errorf("files came back: %v", left)
		}
	})
	t.Run("chroot", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root")
		}
		got := run{program: manners(t), args: []string{"chroot"}}.both(t, "memtrace: ")
		r := read(t, got.traces(t)[0])
		if n := r.allocations(1000); uint64(n)+r.lost < 100+20000 || n < 100+16000 {
			t.Errorf("%d allocations, %d records lost of 40200", n, r.lost)
		}
	})
}

func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root to mount a small file system")
	}
	for _, size := range []string{"64k", "1m", "2m"} {
		t.Run(size, func(t *testing.T) {
			dir := t.TempDir()
			if text, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", dir).CombinedOutput(); err != nil {
				t.Skipf("mount: %v %s", err, text)
			}
			t.Cleanup(func() { exec.Command("umount", "-l", dir).Run() })
			run{program: manners(t), args: []string{"threads"}, dir: dir}.both(t, "memtrace: ")
		})
	}
}

// Messages to a stderr that nobody reads do not end the program, whichever half says them: this one makes the drainer fail.
func TestBrokenStderr(t *testing.T) {
	script := `exec 3>&1; { sleep 0.1; LD_PRELOAD="$1" "$2" fsize-later; echo "exit $?" >&3; } 2>&1 >/dev/null | true`
	got := run{program: "/bin/bash", args: []string{"-c", script, "sh", library(t), manners(t)}, env: []string{"MEMTRACE_LOG=debug"}}.do(t)
	if got.stdout != "exit 0\n" {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
}

func TestDisabled(t *testing.T) {
	got := run{program: manners(t), args: []string{"threads"}, env: []string{"MEMTRACE_DISABLE=1"}}.both(t, "")
	if left, _ := os.ReadDir(got.dir); len(left) != 0 {
		t.Errorf("files were left: %v", left)
	}
}
