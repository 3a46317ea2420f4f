//go:build e2e

package e2e

import (
	"testing"
)

// A program with everything that could break a script inside it, or that it could trigger: proxies, classes with a
// false __class__, methods and hooks that raise, modules that are deleted in the middle of a step, tracers, timeouts by
// signals. It runs as without the library: every byte of its output and errors is the same, and so is its exit status.
// Addresses are not its own.
func TestAdapterBreaking(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, run := range []struct {
		combination
		last   string
		status int
	}{{combination{torch27, "3.9"}, "--raise", 1}, {combination{torch27, ""}, "--exit", 5},
		{combination{torch215, ""}, "--raise", 1}} {
		t.Run(run.String(), func(t *testing.T) {
			t.Parallel()
			p := program{framework: run.framework, python: run.python,
				args: []string{"breaking.py", run.last}, plain: true}
			want, wantStatus := p.status(t)
			p.plain = false
			r, status := p.status(t)
			if status != wantStatus || status != run.status {
				t.Errorf("exit status %d, %d without the library", status, wantStatus)
			}
			if r.stdout != want.stdout || r.stdout == "" {
				t.Errorf("printed\n%s\nwithout the library\n%s", r.stdout, want.stdout)
			}
			if errs, wantErr := address.ReplaceAllString(r.stderr, "ADDRESS"),
				address.ReplaceAllString(want.stderr, "ADDRESS"); errs != wantErr {
				t.Errorf("standard error\n%s\nwithout the library\n%s", errs, wantErr)
			}
			_, reader := readEvents(t, r.trace)
			if info := reader.Info(); info["adapter.torch"] != "on" || info["adapter.torch.trouble"] != "" {
				t.Errorf("the adapter is %q, trouble %q", info["adapter.torch"], info["adapter.torch.trouble"])
			}
		})
	}
}
