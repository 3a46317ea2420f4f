//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// adviceOf runs a case of advice.py into a device that is too small, and returns the report's account of the failure.
func adviceOf(t *testing.T, args ...string) (rules []string, text string) {
	t.Helper()
	p := program{framework: torch27, args: append([]string{"advice.py"}, args...),
		env: []string{"NULLCUDA_MEM=1500M"}}
	r, status := p.status(t)
	if status != 1 {
		t.Fatalf("exit status %d: %s", status, r.stderr)
	}
	for _, e := range jsonReport(t, r.trace).OOM.Events {
		if e.Outcome == "failed" {
			for _, a := range e.Advice {
				rules, text = append(rules, a.Rule), text+a.Text+"\n"
			}
			return rules, text
		}
	}
	t.Fatal("memory did not run out")
	return nil, ""
}

// Weights of the best epoch in a dictionary were "not categorized". A place that lastingly has as many bytes as all
// parameters has a copy of them; what sends gradients, and an optimizer's temporaries, are as large and none.
func TestCopyOfParameters(t *testing.T) {
	t.Parallel()
	const source = `
import torch
from torch import nn

net = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(8)), nn.BatchNorm1d(1024)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(3):
    for _ in range(3):
        net(torch.randn(64, 1024, device="cuda")).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    best = None
    best = {name: value.clone() for name, value in net.state_dict().items()}
torch.empty(1 << 26, dtype=torch.uint8, device="cuda")
print(sum((value.nbytes + 511) // 512 * 512 for value in best.values()))
`
	r := program{framework: torch27, args: []string{"best.py"}, source: source}.record(t)
	c := jsonReport(t, r.trace).ParameterCopies
	if c == nil || fmt.Sprintln(c.Bytes) != r.stdout || c.Count != 1 || c.Site != "best.py:13 <dictcomp>" {
		t.Errorf("%+v, the program has %s", c, r.stdout)
	}
	if text := memtrace(t, "report", r.trace); !strings.Contains(text, "as large as all parameters") {
		t.Errorf("%s", text)
	}
}

// TestAdviceFromWhatIsKnown: each advice is given where it helps, with the memory it frees, and not to a program that
// follows it already.
func TestAdviceFromWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, rule, words string
		args, followed    []string
	}{
		{"checkpoint", "loaded-twice",
			`256.2 MiB that were read from a checkpoint onto the device stand beside parameters`, []string{"twice"},
			[]string{"twice", "--followed"}},
		{"lengths", "longer-input", "times those of a usual iteration (128.0 MiB, the median of 5)",
			[]string{"lengths"}, []string{"lengths", "--followed"}},
		{"autocast", "activations", "Half precision (torch.autocast)", []string{"autocast"},
			[]string{"autocast", "--followed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.name != "lengths" {
				extended(t)
			}
			rules, text := adviceOf(t, c.args...)
			if !slices.Contains(rules, c.rule) || !strings.Contains(text, c.words) {
				t.Errorf("%q, want %s with %q:\n%s", rules, c.rule, c.words, text)
			}
			rules, text = adviceOf(t, c.followed...)
			if strings.Contains(text, c.words) || c.rule != "activations" && slices.Contains(rules, c.rule) {
				t.Errorf("a program that follows it is told %q:\n%s", rules, text)
			}
		})
	}
}

// A checkpoint that is on the device twice is also reported where memory does not run out.
func TestLoadedTwiceAtThePeak(t *testing.T) {
	t.Parallel()
	extended(t)
	const words = "256.2 MiB of it were read from a checkpoint and were on the device twice"
	for _, c := range []struct {
		args []string
		says bool
	}{{[]string{"twice", "--steps", "1"}, true}, {[]string{"twice", "--steps", "1", "--followed"}, false}} {
		if !c.says && !reaches(nightly) { // adviceOf has it where memory runs out
			continue
		}
		r := program{framework: torch27,
			args: append([]string{"advice.py"}, c.args...)}.record(t)
		text := strings.Join(strings.Fields(memtrace(t, "report", r.trace)), " ")
		if strings.Contains(text, words) != c.says {
			t.Errorf("%q: %s", c.args, text)
		}
	}
}
