package hostile

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// What cuGetProcAddress hands out for every base name, version and flag is the wrapper of what the driver would have given.
func TestCoverVersions(t *testing.T) {
	program := compile(t, "cover-versions", []string{"testdata/guest/cover_versions.c"})
	for _, driver := range []string{"11040", "12040", "12090", "13000", "13990"} {
		t.Run(driver, func(t *testing.T) {
			got := run{program: program, env: []string{"NULLCUDA_DRIVER_VERSION=" + driver}}.both(t, "")
			if n := strings.Count(got.stdout, "\n"); n < 1000 || strings.Contains(got.stdout, "nameless") {
				t.Errorf("%d lines, or functions without a name", n)
			}
			if r := got.only(t); driver == "13990" && r.allocations(4242) != 1 {
				t.Errorf("a version without a new ABI went past the hooks")
			}
		})
	}
}

// A function of a version that the hooks do not know is passed through, and the trace says so.
func TestCoverFuture(t *testing.T) {
	program := compile(t, "cover-versions", []string{"testdata/guest/cover_versions.c"})
	future := compile(t, "libfuture.so", []string{"testdata/guest/cover_future.c"}, "-shared", "-fPIC")
	got := run{program: program, preload: []string{"", future}, env: []string{"NULLCUDA_DRIVER_VERSION=13050"}}.both(t, "")
	if !strings.HasSuffix(got.stdout, "future: 0 0, labelled label: 0\n") {
		t.Errorf("the new function was not called:\n%s", got.stdout[max(0, len(got.stdout)-200):])
	}
	if !strings.Contains(traceInfo(t, got), "unhooked.cuMemAlloc") {
		t.Errorf("the trace does not say what was not hooked:\n%s", traceInfo(t, got))
	}
}

// traceInfo returns what `memtrace info` says of the only trace.
func traceInfo(t *testing.T, got result) string {
	t.Helper()
	paths := got.traces(t)
	if len(paths) != 1 {
		t.Fatalf("%d traces", len(paths))
	}
	cmd := exec.Command("go", "run", "./cmd/memtrace", "info", paths[0])
	cmd.Dir = guest.Root()
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return string(text)
}

// Somebody else's interposer before or after the library, which finds the functions behind itself or in the libraries that define them. It is called as often as
// without the library, the program does the same, and every block is recorded once.
func TestCoverBetween(t *testing.T) {
	const source = "testdata/guest/cover_between.c"
	others := map[string]string{
		"next":   compile(t, "libbetween-next.so", []string{source}, "-shared", "-fPIC"),
		"handle": compile(t, "libbetween-handle.so", []string{source}, "-shared", "-fPIC", "-DBY_HANDLE"),
	}
	programs := []struct{ level, route, path string }{
		{"driver", "linked", coverProgram(t, "cover-linked", append([]string{"-DCOVER_LINKED_DRIVER", "-Wl,--no-as-needed"}, withDriver(t)...)...)},
		{"driver", "dlsym", coverProgram(t, "cover")},
		{"driver", "by-version", coverProgram(t, "cover")},
		{"runtime", "linked", coverProgram(t, "cover-linked12", "-DCOVER_LINKED_RUNTIME", runtimePath(t, "12"))},
		{"runtime", "dlsym", coverProgram(t, "cover")},
	}
	for how, other := range others {
		for order, preload := range map[string][]string{"before": {other, ""}, "after": {"", other}} {
			for _, p := range programs {
				t.Run(filepath.Join(how, order, p.level, p.route), func(t *testing.T) {
					r := coverRun(t, p.level, p.route, "12")
					r.program, r.preload = p.path, preload
					got := r.both(t, "")
					if got.exit != 0 {
						t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
					}
					checkCover(t, got)
				})
			}
		}
	}
}
