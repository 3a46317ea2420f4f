//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/internal/guest"
)

// Profilers of the processor and of host memory work beside the library: both report all that they do alone, and the
// program's output is the same.
func TestBesideProfilers(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"resnet.py", "--steps", "3",
		"--memory-stats", "STATS"}}
	packages := p.packageFolder(t, "profilers.txt")
	p.env = []string{"PYTHONPATH=" + packages + ":" + filepath.Join(guest.Root(), "python")}
	spy := filepath.Join(packages, "bin", "py-spy")
	for _, test := range []struct {
		name    string
		before  []string // in front of the command
		module  []string // in front of the script
		written string   // what the profiler leaves beside the program's trace
	}{
		{"py-spy", []string{spy, "record", "--native", "-o", "out.svg", "--"}, nil, "out.svg"},
		{"py-spy without stops", []string{spy, "record", "--nonblocking", "-o", "out.svg", "--"}, nil, "out.svg"},
		{"memray", nil, []string{"-m", "memray", "run", "-q", "-o", "out.mem"}, "out.mem"},
		{"memray with native stacks", nil, []string{"-m", "memray", "run", "-q", "--native", "-o", "out.mem"},
			"out.mem"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rarely(t, test.name == "py-spy without stops" || test.name == "memray")
			r := p.beside(t, test.before, test.module)
			compareTorch(t, r)
			compareAccounts(t, r)
			p.checkProfile(t, filepath.Join(r.dir, test.written))
		})
	}
	t.Run("py-spy attached", func(t *testing.T) {
		t.Parallel()
		p.args = []string{"resnet.py", "--steps", "400", "--memory-stats", "STATS"}
		p.attached(t, spy)
	})
}

// beside runs the program under a profiler, with the library.
func (p program) beside(t *testing.T, before, module []string) *result {
	t.Helper()
	cmd, r := p.start(t)
	script := slices.IndexFunc(cmd.Args, func(a string) bool { return strings.HasSuffix(a, ".py") })
	cmd.Args = slices.Concat(before, []string{cmd.Path}, cmd.Args[1:script], module, cmd.Args[script:])
	cmd.Path = cmd.Args[0]
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return r
}

// checkProfile checks that the profiler's output is whole: a picture that shows the program's functions, or a file that
// can be read again.
func (p program) checkProfile(t *testing.T, path string) {
	t.Helper()
	if filepath.Ext(path) == ".svg" {
		if picture, err := os.ReadFile(path); err != nil || !bytes.Contains(picture, []byte("resnet.py")) {
			t.Errorf("py-spy saw nothing of the program: %v", err)
		}
		return
	}
	cmd := exec.Command(filepath.Join(venv(t, p.framework, p.python), "bin", "python"), "-m", "memray", "stats", path)
	cmd.Env = p.env
	text, err := cmd.CombinedOutput()
	if err != nil || !regexp.MustCompile(`Total allocations:\s+[1-9][0-9]{4}`).Match(text) {
		t.Errorf("memray: %v\n%s", err, text)
	}
}

// attached has py-spy sample the running program repeatedly.
func (p program) attached(t *testing.T, spy string) {
	t.Helper()
	cmd, r := p.start(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	seen := 0
	for deadline := time.After(limit); ; {
		select {
		case err := <-ended:
			if err != nil || seen == 0 {
				t.Fatalf("the program ended with %v, and py-spy saw it %d times", err, seen)
			}
			compareTorch(t, r)
			compareAccounts(t, r)
			return
		case <-deadline:
			cmd.Process.Kill()
			t.Fatal("the program does not end")
		default:
		}
		text, err := exec.Command(spy, "dump", "--native", "--pid", strconv.Itoa(cmd.Process.Pid)).CombinedOutput()
		if err == nil && bytes.Contains(text, []byte("resnet.py")) {
			seen++
		}
	}
}
