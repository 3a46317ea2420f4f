package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/spool"
)

const precious = "precious\n"

// swapping runs a program in whose folder a file of the library's is exchanged, and returns the run, with a file beside
// it that must not be changed.
func swapping(t *testing.T, kind, file string, env ...string) (got result, untouched func()) {
	t.Helper()
	dir := t.TempDir()
	kept := filepath.Join(t.TempDir(), "precious.txt")
	write(t, kept, precious)
	program := compile(t, "swap", []string{"testdata/guest/swap.c"}, append(withDriver(t), "-rdynamic")...)
	r := run{program: program, args: []string{filepath.Join(dir, file), kind, kept}, dir: dir, preload: []string{""},
		env: append([]string{"MEMTRACE_OUTPUT=" + filepath.Join(dir, "memtrace.x.bin"), "MEMTRACE_LOG=info"}, env...)}
	got = r.do(t)
	if got.exit != 0 || got.stdout != "end\n" {
		t.Errorf("exit %d, stdout %q, stderr\n%s", got.exit, got.stdout, got.stderr)
	}
	return got, func() {
		t.Helper()
		if text, err := os.ReadFile(kept); err != nil || string(text) != precious {
			t.Errorf("a file outside was changed: %q, %v", text, err)
		}
	}
}

// The drainer opened the trace and the spool by their names, some milliseconds after C had made them. In a folder that
// others can write to, a user who put a link there in between had the trace written over any file of the program's
// user: 20 of 20 times.
func TestSwappedTrace(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"link", "pipe", "file"} {
		t.Run(kind, func(t *testing.T) {
			got, untouched := swapping(t, kind, "memtrace.x.bin")
			untouched()
			if !strings.Contains(got.stderr, "records stay in the spool") ||
				strings.Count(got.stderr, "cannot start") != 1 {
				t.Errorf("stderr:\n%s", got.stderr)
			}
			if r := read(t, filepath.Join(got.dir, "memtrace.x.bin"+spool.Extension)); r.allocations(1000) != 100 ||
				r.lost != 0 {
				t.Errorf("%d allocations in the spool, %d lost", r.allocations(1000), r.lost)
			}
		})
	}
}

func TestSwappedSpool(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"link", "pipe", "file"} {
		t.Run(kind, func(t *testing.T) {
			got, untouched := swapping(t, kind, "memtrace.x.bin"+spool.Extension)
			untouched()
			if !strings.Contains(got.stderr, "the drainer cannot start") {
				t.Errorf("stderr:\n%s", got.stderr)
			}
		})
	}
}

// At the end the spool goes, and with MEMTRACE_SPOOL_DIR what the link beside the trace leads to. Where that link had
// been redirected, the file at its target was removed.
func TestSwappedSpoolAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, distant := range []bool{false, true} {
		var env []string
		folder := t.TempDir()
		if distant {
			env = []string{"MEMTRACE_SPOOL_DIR=" + folder}
		}
		got, untouched := swapping(t, "link-at-end", "memtrace.x.bin"+spool.Extension, env...)
		untouched()
		if !strings.Contains(got.stderr, "another file has taken its place") {
			t.Errorf("stderr:\n%s", got.stderr)
		}
	}
}
