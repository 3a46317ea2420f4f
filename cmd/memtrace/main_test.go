package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"memtrace/internal/control"
)

var update = flag.Bool("update", false, "rewrite the expected outputs in testdata/script")

// noRaceSleep keeps a command that was built with the race detector from sleeping a second before it ends.
const noRaceSleep = "atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	os.Setenv("GORACE", noRaceSleep)
	if filepath.Base(os.Args[0]) != "memtrace" { // of the runner that runs these tests, not of a script
		os.Unsetenv(githubActions)
	}
	testscript.Main(m, map[string]func(){"memtrace": main})
}

// TestScript runs the command as users do: testdata/script has a file per verb and subject.
func TestScript(t *testing.T) {
	library := emptyLibrary(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("MEMTRACE_LIBRARY", library)
			env.Setenv("GORACE", noRaceSleep)
			// else memtrace top reads whatever else is recorded on this machine
			env.Setenv(control.FolderVariable, filepath.Join(env.WorkDir, "sockets"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"status": exitStatus, "cut": cutFile},
	})
}

// emptyLibrary builds a library that can be preloaded and does nothing: the scripts' guests play the recorder's part
// themselves.
func emptyLibrary(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libmemtrace.so")
	build := exec.Command("cc", "-shared", "-o", path, "-x", "c", "/dev/null")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("a C compiler is needed: %v\n%s", err, out)
	}
	return path
}

// exitStatus runs a command and checks its exact exit status: status N COMMAND ARGUMENT...
func exitStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND [ARGUMENT...]")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = err.Error()
		if exit, ok := err.(*exec.ExitError); ok {
			got = fmt.Sprint(exit.ExitCode())
		}
	}
	if got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// cutFile copies the first N bytes of a file, or all but the last N where N is negative: cut N FROM TO
func cutFile(ts *testscript.TestScript, neg bool, args []string) {
	var n int
	if len(args) == 3 {
		_, err := fmt.Sscan(args[0], &n)
		ts.Check(err)
	}
	if neg || n == 0 {
		ts.Fatalf("usage: cut N FROM TO")
	}
	data, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	if n < 0 {
		n += len(data)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), data[:n], 0o600))
}
