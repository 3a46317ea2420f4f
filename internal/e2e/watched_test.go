//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// The library once learned the layout of PyTorch's nodes by a small forward and backward pass of its own. The program's
// profiles had rows of it, its operators had other numbers than without, and a child that it forked could run no
// backward pass, for PyTorch's threads were there. All that PyTorch reports of a program is the same with the library:
// keys, counts, shapes, bytes and stacks of profiles and Kineto's file, modes, hooks, numbers of operators and threads.
func TestWatchedWork(t *testing.T) {
	t.Parallel()
	extended(t)
	usdt := regexp.MustCompile(`(?m)^USDT:.*\n`) // Kineto prints when it starts
	for _, framework := range []string{torch27, torch215} {
		for _, what := range []string{"profile", "modes", "numbers", "fork"} {
			t.Run(framework+"/"+what, func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && what != "profile")
				plain := program{framework: framework, args: []string{"watched_work.py", what}, plain: true}.record(t)
				r := program{framework: framework, args: []string{"watched_work.py", what}}.record(t)
				compareLines(t, usdt.ReplaceAllString(r.stdout, ""), usdt.ReplaceAllString(plain.stdout, ""))
				if len(plain.stdout) < 20 {
					t.Errorf("the program said %q", plain.stdout)
				}
				_, reader := readEvents(t, r.trace)
				if info := reader.Info(); info["adapter.torch"] != "on" ||
					!strings.HasPrefix(info["adapter.torch.backward"], "on") || info["adapter.torch.trouble"] != "" {
					t.Errorf("the adapter is %q, operators %q, trouble %q", info["adapter.torch"],
						info["adapter.torch.backward"], info["adapter.torch.trouble"])
				}
			})
		}
	}
}

// compareLines shows lines that only one of two texts has.
func compareLines(t *testing.T, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	counts := map[string]int{}
	for line := range strings.Lines(want) {
		counts[line]++
	}
	for line := range strings.Lines(got) {
		counts[line]--
	}
	shown := 0
	for line, count := range counts {
		if count != 0 && shown < 20 {
			shown++
			t.Errorf("%+d times more without the library: %.300s", count, line)
		}
	}
	if shown == 0 {
		t.Error("the same lines in another order")
	}
}
