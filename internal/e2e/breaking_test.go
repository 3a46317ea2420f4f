//go:build e2e

package e2e

import (
	"bytes"
	"os/exec"
	"testing"
	"time"
)

// ends runs a program to its end, whatever that is.
func (p program) ends(t *testing.T) (stdout, stderr string, status int, r *result) {
	t.Helper()
	cmd, r := p.start(t)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if _, ended := err.(*exec.ExitError); err != nil && !ended {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode(), r
}

// A program with everything that a script inside it could stumble over, or wake: proxies, classes that lie, methods and
// hooks that raise, modules that go in the middle of a step, tracers, timeouts by signals. It runs as without the
// library: every byte of its output and errors is the same, and so is its exit status. Addresses are not its own.
func TestAdapterBreaking(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		combination
		last   string
		status int
	}{{combination{torch27, "3.9"}, "--raise", 1}, {combination{torch27, "3.11"}, "--exit", 5},
		{combination{torch215, "3.14"}, "--raise", 1}} {
		t.Run(run.String(), func(t *testing.T) {
			t.Parallel()
			p := program{framework: run.framework, python: interpreter(t, run.python),
				args: []string{"breaking.py", run.last}, plain: true}
			wantOut, wantErr, wantStatus, _ := p.ends(t)
			p.plain = false
			out, errs, status, r := p.ends(t)
			if status != wantStatus || status != run.status {
				t.Errorf("exit status %d, %d without the library", status, wantStatus)
			}
			if out != wantOut || out == "" {
				t.Errorf("printed\n%s\nwithout the library\n%s", out, wantOut)
			}
			if errs, wantErr := address.ReplaceAllString(errs, "ADDRESS"),
				address.ReplaceAllString(wantErr, "ADDRESS"); errs != wantErr {
				t.Errorf("standard error\n%s\nwithout the library\n%s", errs, wantErr)
			}
			_, reader := readEvents(t, r.trace)
			if info := reader.Info(); info["adapter.torch"] != "on" || info["adapter.torch.trouble"] != "" {
				t.Errorf("the adapter is %q, trouble %q", info["adapter.torch"], info["adapter.torch.trouble"])
			}
		})
	}
}
