//go:build e2e

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/guest"
)

// interpreter returns the path of a CPython of this version; the test is skipped where there is none and none can be fetched.
func interpreter(t *testing.T, version string) string {
	t.Helper()
	cmd := exec.Command("python3", filepath.Join(guest.Root(), "testdata", "python", "interpreters.py"), version)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("%v: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// combination is a framework and a version of Python for which it is published.
type combination struct{ framework, python string }

func (c combination) String() string { return c.framework + "/" + c.python }

// MXNet's last release needs a numpy that has no wheels from 3.12 on.
var (
	torches = []combination{{torch27, "3.9"}, {torch27, "3.10"}, {torch27, "3.11"}, {torch27, "3.12"}, {torch27, "3.13"}, {torch215, "3.14"}}
	mxnets  = []combination{{mxnet, "3.9"}, {mxnet, "3.10"}, {mxnet, "3.11"}}
)

// runOracle runs a program with the oracle and compares the stacks of all the calls that it drew.
func runOracle(t *testing.T, p program, rate string) (*result, tally) {
	t.Helper()
	log := p.underOracle(t, rate)
	r := p.run(t)
	sum := compareStacks(t, r.trace, log)
	t.Logf("%s", sum)
	if sum.points == 0 || sum.skipped*100 > sum.points {
		t.Errorf("too few points to say anything: %s", sum)
	}
	return r, sum
}

// The stacks of a training run are those that libgcc and the interpreter see.
func TestStacksOfTraining(t *testing.T) {
	for _, c := range torches {
		t.Run(c.String(), func(t *testing.T) {
			p := program{framework: c.framework, python: interpreter(t, c.python), args: []string{"gpt2.py", "--steps", "3"}}
			_, sum := runOracle(t, p, "1")
			if sum.cut == 0 || sum.inThreads == 0 {
				t.Errorf("no stack with Python frames, or none without: %s", sum)
			}
		})
	}
}
