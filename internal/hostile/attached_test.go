package hostile

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// attached is a program (testdata/guest/attached.c) that runs, without the library unless its environment loads it.
type attached struct {
	cmd    *exec.Cmd
	dir    string
	input  io.WriteCloser
	output *bufio.Reader
	errors bytes.Buffer
	ended  bool
	before map[string]time.Time // sockets that were there before it started, of processes that were killed
}

func startAttached(t *testing.T, env []string, args ...string) *attached {
	t.Helper()
	program := compile(t, "attached", []string{"testdata/guest/attached.c"}, withDriver(t)...)
	return startProgram(t, program, run{}, env, args...)
}

// startProgram starts a program and waits until it is ready.
func startProgram(t *testing.T, program string, how run, env []string, args ...string) *attached {
	t.Helper()
	a := &attached{cmd: exec.Command(program, args...), dir: t.TempDir(), before: allSockets(t)}
	a.cmd.Dir = a.dir
	a.cmd.Env = append(append(os.Environ(), how.environment(t)...), env...)
	a.cmd.Stderr = &a.errors
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if a.input, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err == nil {
		err = a.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	hangs := guard(a.cmd.Process.Pid)
	t.Cleanup(func() {
		hangs()
		if !a.ended {
			a.cmd.Process.Kill()
			a.cmd.Wait()
		}
	})
	a.output = bufio.NewReader(out)
	if line := a.line(t); line != "ready" {
		t.Fatalf("%q\n%s", line, a.errors.String())
	}
	return a
}

func (a *attached) line(t *testing.T) string {
	t.Helper()
	line, err := a.output.ReadString('\n')
	if err != nil {
		t.Fatalf("the program ends or hangs: %v after %q\n%s", err, line, a.errors.String())
	}
	return strings.TrimSuffix(line, "\n")
}

// do has the program do something.
func (a *attached) do(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(a.input, line+"\n"); err != nil {
		t.Fatal(err)
	}
	if got := a.line(t); got != line {
		t.Fatalf("%s: %s", line, got)
	}
}

// end has it end, which it does as ever.
func (a *attached) end(t *testing.T) {
	t.Helper()
	a.do(t, "end")
	a.ended = true
	if err := a.cmd.Wait(); err != nil || a.errors.Len() > 0 {
		t.Errorf("%v\n%s", err, a.errors.String())
	}
}

func (a *attached) pid() string { return strconv.Itoa(a.cmd.Process.Pid) }

// memtrace runs the command in the program's folder.
func (a *attached) memtrace(t *testing.T, args ...string) (said string, well bool) {
	t.Helper()
	cmd := exec.Command(command(t), args...)
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "MEMTRACE_LIBRARY="+library(t))
	text, err := cmd.CombinedOutput()
	return string(text), err == nil
}

// well runs a verb that succeeds.
func (a *attached) well(t *testing.T, args ...string) string {
	t.Helper()
	said, well := a.memtrace(t, args...)
	if !well {
		t.Fatalf("memtrace %s:\n%s", strings.Join(args, " "), said)
	}
	return said
}

// refused runs a verb that fails, and returns its error.
func (a *attached) refused(t *testing.T, why string, args ...string) {
	t.Helper()
	said, well := a.memtrace(t, args...)
	said, _, _ = strings.Cut(said, "Run 'memtrace") // for help
	if well || !strings.Contains(said, why) || strings.Count(said, "\n") != 1 {
		t.Errorf("memtrace %s ends well: %v; it says %q, want %q in one line", strings.Join(args, " "), well, said, why)
	}
}

func (a *attached) attach(t *testing.T, more ...string) string {
	t.Helper()
	return a.well(t, append(append([]string{"attach", "-v"}, more...), a.pid())...)
}

// sizes compares how many allocations of each size the one trace has.
func (a *attached) sizes(t *testing.T, want map[uint64]int) recorded {
	t.Helper()
	r := result{dir: a.dir}.only(t)
	for size, count := range want {
		if n := r.allocations(size); n != count {
			t.Errorf("%d allocations of %d bytes, want %d", n, size, count)
		}
	}
	return r
}

// sockets lists the sockets that a process has made and left.
func (a *attached) sockets(t *testing.T) (paths []string) {
	t.Helper()
	for path, made := range allSockets(t) {
		if filepath.Base(path) == a.pid()+".sock" && !made.Equal(a.before[path]) {
			paths = append(paths, path)
		}
	}
	return paths
}

// allSockets returns when each socket was made that programs have without a folder of their own.
func allSockets(t *testing.T) map[string]time.Time {
	t.Helper()
	paths, err := filepath.Glob("/tmp/memtrace-*/*.sock")
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]time.Time, len(paths))
	for _, path := range paths {
		if info, err := os.Lstat(path); err == nil {
			made[path] = info.ModTime()
		}
	}
	return made
}
