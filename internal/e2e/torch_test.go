//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// gpt2Training is GPT-2 in a training loop of its own, for tests that need a trace of some training.
var gpt2Training = program{framework: torch27, args: []string{"gpt2.py", "--steps", "3", "--memory-stats", "STATS"}}

var torchPrograms = []program{
	gpt2Training,
	{args: []string{"resnet.py", "--memory-stats", "STATS", "--exit-now"}},
	{args: []string{"two_optimizers.py", "--memory-stats", "STATS"}},
	{args: []string{"lstm.py", "--memory-stats", "STATS", "--exit-now"}},
	{args: []string{"two_devices.py", "--memory-stats", "STATS"}, env: []string{"NULLCUDA_DEVICES=2"}},
}

func name(p program) string {
	return strings.TrimSuffix(p.args[0], ".py") + "/" + strings.Join(p.env, ",")
}

// The framework level equals torch's own counters to the byte, on every device, and the driver level equals the
// driver's account change by change.
func TestTorchCounters(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, p := range torchPrograms {
			p.framework = framework
			t.Run(framework+"/"+name(p), func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && p.args[0] != "gpt2.py" && p.args[0] != "two_devices.py")
				if p.args[0] == "lstm.py" { // it ends as resnet.py does
					extended(t)
				}
				r := p.record(t)
				compareTorch(t, r)
				compareAccounts(t, r)
			})
		}
	}
}

// compareTorch compares the report with torch.cuda.memory_stats() as of the mark that the program set when it read
// them.
func compareTorch(t *testing.T, r *result) {
	t.Helper()
	rep := jsonReport(t, r.trace, "--at", "mark:stats")
	if !rep.Health.Complete ||
		rep.Health.ReservedMismatches+rep.Health.AllocatedMismatches+rep.Health.UnmatchedFrees != 0 {
		t.Errorf("health %+v", rep.Health)
	}
	counters := r.counters(t)
	for index, c := range counters {
		d := deviceOf(t, rep, index)
		what := "device " + index + ": "
		equal(t, what+"peak", d.Framework.PeakBytes, number(t, c, "allocated_bytes.all.peak"))
		equal(t, what+"allocations", d.Framework.AllocCount, number(t, c, "allocation.all.allocated"))
		equal(t, what+"allocated in all", d.Framework.AllocBytes, number(t, c, "allocated_bytes.all.allocated"))
		equal(t, what+"reserved peak", d.ReservedBytesPeak, number(t, c, "reserved_bytes.all.peak"))
		equal(t, what+"segments", d.Driver.AllocCount, number(t, c, "segment.all.allocated"))
		found := false
		for _, at := range rep.At.Devices {
			if at.Index == d.Index {
				found = true
				equal(t, what+"current", at.Framework.LiveBytes, number(t, c, "allocated_bytes.all.current"))
				if _, counted := c["requested_bytes.all.current"]; counted {
					if at.Framework.Requested == nil || at.Framework.Requested.UnknownBytes != 0 {
						t.Fatalf("%srequests %+v", what, at.Framework.Requested)
					}
					equal(t, what+"requested", at.Framework.Requested.Bytes,
						number(t, c, "requested_bytes.all.current"))
				}
				equal(t, what+"reserved now", at.ReservedBytes, number(t, c, "reserved_bytes.all.current"))
			}
		}
		if !found || d.Framework.AllocCount == 0 {
			t.Errorf("%snothing was recorded", what)
		}
	}
	if len(counters) == 0 {
		t.Error("the program wrote no counters")
	}
}

// Other allocators of torch: the driver level is complete under each; the framework level where torch reports it; where
// it does not, the report notes that.
func TestTorchBackends(t *testing.T) {
	t.Parallel()
	modes := []struct {
		name, env string
		framework bool
		note      string
	}{
		{"uncached", "PYTORCH_NO_CUDA_MEMORY_CACHING=1", false, "cach"},
		{"async", "PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync", false, "cudaMallocAsync"},
		{"expandable", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", true, ""},
	}
	for _, framework := range []string{torch27, torch215} {
		for _, mode := range modes {
			t.Run(framework+"/"+mode.name, func(t *testing.T) {
				t.Parallel()
				if !mode.framework {
					extended(t)
				}
				rarely(t, framework != torch27 && !mode.framework)
				p := program{framework: framework, args: []string{"resnet.py", "--memory-stats", "STATS"},
					env: []string{mode.env}}
				plain := p
				plain.plain = true
				r, without := p.record(t), plain.record(t)
				if got, want := stable(r.stdout), stable(without.stdout); got != want ||
					stable(r.stderr) != stable(without.stderr) {
					t.Errorf("with the library the program says %q %q, without %q %q", r.stdout, r.stderr,
						without.stdout, without.stderr)
				}
				compareAccounts(t, r)
				if mode.framework {
					compareExpandable(t, r)
					return
				}
				rep := jsonReport(t, r.trace)
				if rep.Framework.AllocCount != 0 || !strings.Contains(strings.Join(rep.Notes, "\n"), mode.note) {
					t.Errorf("%d framework blocks, notes %q", rep.Framework.AllocCount, rep.Notes)
				}
				if rep.Driver.PeakBytes == 0 {
					t.Error("nothing at the driver level")
				}
			})
		}
	}
}

// compareExpandable is compareTorch for segments that grow: torch counts a segment where the driver makes many chunks.
func compareExpandable(t *testing.T, r *result) {
	t.Helper()
	rep := jsonReport(t, r.trace, "--at", "mark:stats")
	for index, c := range r.counters(t) {
		d := deviceOf(t, rep, index)
		equal(t, "peak", d.Framework.PeakBytes, number(t, c, "allocated_bytes.all.peak"))
		equal(t, "allocations", d.Framework.AllocCount, number(t, c, "allocation.all.allocated"))
		equal(t, "reserved peak", d.ReservedBytesPeak, number(t, c, "reserved_bytes.all.peak"))
		for _, at := range rep.At.Devices {
			equal(t, "current", at.Framework.LiveBytes, number(t, c, "allocated_bytes.all.current"))
			equal(t, "reserved now", at.ReservedBytes, number(t, c, "reserved_bytes.all.current"))
		}
	}
}

// stable drops what differs between two runs of the same program: times.
func stable(text string) string {
	var words []string
	for _, w := range strings.Fields(text) {
		if !strings.ContainsAny(w, "0123456789") {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// An allocation that does not fit raises what it raises without the library, and the trace has the refusal and torch's
// own report of it.
func TestTorchOutOfMemory(t *testing.T) {
	t.Parallel()
	p := program{framework: torch27, args: []string{"gpt2.py", "--steps", "1"}, env: []string{"NULLCUDA_MEM=1G"}}
	cmd, r := p.start(t)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "OutOfMemoryError") {
		t.Fatalf("the program did not run out of memory: %v\n%s", err, out)
	}
	rep := memtrace(t, "dump", r.trace)
	if !strings.Contains(rep, "\noom ") || !strings.Contains(rep, " status=2") {
		t.Error("the trace has no refused allocation and no report of it")
	}
}
