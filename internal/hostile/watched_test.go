package hostile

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// Programs under observation: debuggers and tracers stop them in the middle of calls, and valgrind runs them on a
// processor of its own.

// watched runs a random ledger under the words and compares all its accounts.
func watched(t *testing.T, l ledgerRun, before ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := l.command(t, dir, before...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := finish(cmd); err != nil || !strings.Contains(said.String(), "end\n") {
		t.Fatalf("%v\n%s", err, said.String())
	}
	checkLedger(t, ledgerProgram(t, l.runtime), dir, false)
}

// Every call into the system stops: by ptrace alone, and with a filter that stops some, which the program then has as
// if it had laid it itself. What it records is whole in the spool.
func TestUnderStrace(t *testing.T) {
	t.Parallel()
	strace := guest.Tool(t, "strace", "-o", "/dev/null", "true")
	l := ledgerRun{seed: 5, threads: 8, devices: 2, steps: 3000, words: []string{"ends"}, runtime: "12"}
	t.Run("ptrace", func(t *testing.T) { watched(t, l, strace, "-f", "-o", "/dev/null") })
	t.Run("seccomp-bpf", func(t *testing.T) {
		watched(t, l, strace, "-f", "--seccomp-bpf", "-e", "trace=openat,mmap", "-o", "/dev/null")
	})
}

// Breakpoints in the wrappers and in the driver's functions, which have the same names; each stops all threads, ours
// among them.
func TestUnderGDB(t *testing.T) {
	t.Parallel()
	gdb := guest.Tool(t, "gdb", "-q", "-batch", "-nx", "-ex", "run", "true")
	script := filepath.Join(t.TempDir(), "commands")
	stop := "commands\nsilent\nbacktrace 3\ncontinue\nend\n"
	write(t, script, "set confirm off\nset pagination off\nset breakpoint pending on\nbreak cuMemAllocManaged\n"+stop+
		"break cuGreenCtxCreate\n"+stop+"run\n")
	l := ledgerRun{seed: 6, threads: 8, devices: 2, steps: 3000, words: []string{"ends"}, runtime: "12"}
	watched(t, l, gdb, "-q", "-batch", "-nx", "-x", script, "--args")
}

// A debugger comes, looks and goes while the program works, twice; then the program is killed.
func TestAttached(t *testing.T) {
	t.Parallel()
	gdb := guest.Tool(t, "gdb", "-q", "-batch", "-nx", "-ex", "run", "true")
	l := ledgerRun{seed: 7, threads: 4, devices: 2, steps: 1 << 30, words: []string{"ends"}, runtime: "12"}
	dir := t.TempDir()
	cmd := l.command(t, dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	log := filepath.Join(dir, "null."+strconv.Itoa(cmd.Process.Pid)+".log")
	works := func() bool { st, err := os.Stat(log); return err == nil && st.Size() > 1<<17 }
	if !await(cmd.Process.Pid, works) {
		t.Fatal("the program ends")
	}
	for range 2 {
		text, err := exec.Command(gdb, "-q", "-batch", "-nx", "-p", strconv.Itoa(cmd.Process.Pid), "-ex",
			"break cuMemAlloc_v2", "-ex", "continue", "-ex", "thread apply all backtrace 2",
			"-ex", "delete", "-ex", "detach").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	killLedger(cmd, dir)
	checkLedger(t, ledgerProgram(t, l.runtime), dir, true)
}

// Valgrind hides the vdso from its program, which is where the Go runtime looked for the clock, in the kernel's own
// list: every program died under every tool. (The random ledger does not run there at all: the null driver maps memory
// in a way that valgrind does not know.)
func TestUnderValgrind(t *testing.T) {
	t.Parallel()
	valgrind := guest.Tool(t, "valgrind", "-q", "--tool=none", "true")
	program := compile(t, "totals", []string{"testdata/guest/totals.c"}, withDriver(t)...)
	for _, tool := range []string{"none", "memcheck"} {
		t.Run(tool, func(t *testing.T) {
			args := []string{"-q", "--tool=" + tool, "--trace-children=yes", "--log-file=/dev/null", "env",
				"LD_PRELOAD=" + library(t), program}
			got := run{program: valgrind, args: args, env: []string{"NULLCUDA_LOG=null.log"}}.do(t)
			if got.exit != 0 || got.stdout != "end\n" {
				t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
			}
			compareTotalsOf(t, got, "null.log")
		})
	}
}
