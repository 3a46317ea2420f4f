//go:build e2e

package e2e

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// MXNet's last release needs a numpy that has no wheels from 3.12 on.
var (
	torches = []combination{{torch27, "3.9"}, {torch27, "3.10"}, {torch27, ""}, {torch27, "3.12"},
		{torch27, "3.13"}, {torch215, ""}}
	mxnets = []combination{{mxnet, "3.9"}, {mxnet, "3.10"}, {mxnet, ""}}
)

// runOracle runs a program under the oracle, samples at every call, and compares the stacks, those of frees too.
func runOracle(t *testing.T, c combination, env []string, args ...string) (*result, tally) {
	t.Helper()
	p := program{framework: c.framework, python: c.python, args: args,
		env: append([]string{"MEMTRACE_STACKS=frees"}, env...)}
	r := p.underOracle(t, "1").record(t)
	sum := compareStacks(t, r.trace, filepath.Join(r.dir, "oracle.log"))
	t.Logf("%s", sum)
	if sum.points == 0 || sum.skipped*100 > sum.points {
		t.Errorf("too few points to say anything: %s", sum)
	}
	return r, sum
}

// The stacks of a training run are those that libgcc and the interpreter see, in the interpreter's threads and in those
// of autograd, and nearly every event of a thread that has Python frames has a Python stack.
func TestStacksOfTraining(t *testing.T) {
	t.Parallel()
	for _, c := range torches {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			r, sum := runOracle(t, c, nil, "gpt2.py", "--steps", steps("3"))
			if sum.cut == 0 || sum.inThreads == 0 {
				t.Errorf("no stack with Python frames, or none without: %s", sum)
			}
			checkCoverage(t, r.trace)
		})
	}
}

// steps is how long to train: STACKS_STEPS, for nightly runs, or as given. Five of GPT-2 are ten thousand points, and
// so are four hundred of MXNet.
func steps(usual string) string { return cmp.Or(os.Getenv("STACKS_STEPS"), usual) }

// With everything requested, the native stacks are whole.
func TestStacksWhole(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, c := range []combination{{torch27, "3.9"}, {torch27, ""}, {torch215, ""}} {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			_, sum := runOracle(t, c, []string{"MEMTRACE_STACKS=full"}, "gpt2.py", "--steps", "1", "--layers", "4")
			if sum.cut != 0 || sum.python == 0 {
				t.Errorf("native stacks that are cut at the interpreter: %s", sum)
			}
		})
	}
}

// Generators, coroutines, greenlets, recursion, exec, callbacks through C and whatever else can be between two Python
// frames.
func TestStacksOfShapes(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, c := range torches {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			needPackage(t, c, "greenlet")
			_, sum := runOracle(t, c, nil, "../python/shapes.py", "--rounds", "1")
			if sum.pythonEnds[trace.StackDepth] == 0 {
				t.Errorf("no stack is deeper than the cap: %s", sum)
			}
		})
		if c.framework != torch215 && c.python != "3.9" {
			continue // the oldest and the newest will do: the versions differ in Python frames, not in native ones
		}
		t.Run(c.String()+"/full", func(t *testing.T) {
			t.Parallel()
			needPackage(t, c, "greenlet")
			runOracle(t, c, []string{"MEMTRACE_STACKS=full"}, "../python/shapes.py", "--rounds", "1")
		})
	}
}

// MXNet allocates in the threads of its engine, or with the naive engine in the thread that calls it.
func TestStacksOfMXNet(t *testing.T) {
	t.Parallel()
	for _, c := range mxnets {
		for _, engine := range []string{"ThreadedEnginePerDevice", "NaiveEngine"} {
			t.Run(c.String()+"/"+engine, func(t *testing.T) {
				t.Parallel()
				_, sum := runOracle(t, c, []string{"MXNET_GPU_MEM_POOL_TYPE=Unpooled", "MXNET_ENGINE_TYPE=" + engine},
					"mxnet_gluon.py", "--steps", steps("20"))
				if engine == "NaiveEngine" && sum.python == 0 {
					t.Errorf("no Python frames: %s", sum)
				}
			})
		}
	}
}

// checkCoverage demands a native stack of every event that a call of the program made, and a Python stack of 99.5 % of
// those in threads that have any.
func checkCoverage(t *testing.T, path string) {
	t.Helper()
	events, r := readEvents(t, path)
	python := map[trace.ThreadID]bool{}
	for _, e := range events {
		python[e.Thread] = python[e.Thread] || e.PyStack != 0
	}
	all, without, bare := 0, 0, 0
	for _, e := range events {
		if e.Level != cuda.LevelFramework && e.Level != cuda.LevelDriver || e.Kind == trace.EventReserve ||
			e.Kind == trace.EventSample {
			continue
		}
		if len(r.Tables().Stack(e.Stack)) < 2 {
			bare++
		}
		if python[e.Thread] {
			all++
			if e.PyStack == 0 {
				without++
			}
		}
	}
	t.Logf("%d events in threads with Python frames, %d without a Python stack; %d events without a native stack", all,
		without, bare)
	if all == 0 || without*200 > all || bare != 0 {
		t.Errorf("of %d events in threads with Python frames %d have no Python stack; %d have no native stack", all,
			without, bare)
	}
}

// Segments that grow, memory that runs out and comes back, another allocator: the framework's other ways of allocating
// have stacks, too.
func TestStacksOfModes(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, c := range []combination{{torch27, ""}, {torch215, ""}} {
		for name, mode := range map[string]struct{ env, args []string }{
			"expandable": {[]string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"},
				[]string{"resnet.py", "--steps", "1"}},
			"out of memory": {[]string{"NULLCUDA_MEM=1G"}, []string{"oom.py", "--recover"}},
			"uncached":      {[]string{"PYTORCH_NO_CUDA_MEMORY_CACHING=1"}, []string{"lstm.py", "--steps", "1"}},
		} {
			t.Run(c.String()+"/"+name, func(t *testing.T) {
				t.Parallel()
				rarely(t, c.framework != torch27 && name != "expandable")
				r, _ := runOracle(t, c, mode.env, mode.args...)
				checkCoverage(t, r.trace)
			})
		}
	}
}
