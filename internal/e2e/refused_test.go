//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"memtrace/analyzer/report"
)

// refusedPoint is what testdata/train/refused.py prints.
type refusedPoint struct {
	Points                    int
	Allocated, Reserved, Peak uint64
}

func pointOf(t *testing.T, r *result) (p refusedPoint) {
	t.Helper()
	lines := strings.Fields(strings.ReplaceAll(strings.TrimSpace(r.stdout), " ", ""))
	if len(lines) == 0 || json.Unmarshal([]byte(lines[len(lines)-1]), &p) != nil {
		t.Fatalf("%q\n%s", r.stdout, r.stderr)
	}
	return p
}

// failedEvent is the first time that memory ran out for good.
func failedEvent(t *testing.T, trace string) report.OOMEvent {
	t.Helper()
	for _, e := range jsonReport(t, trace).OOM.Events {
		if e.Outcome == report.OOMFailed {
			return e
		}
	}
	t.Fatal("memory did not run out")
	return report.OOMEvent{}
}

// TestAdviceIsTrue: what is said to try when memory runs out gives back what it says, within a tenth and what the
// refused request is, and nothing is said that would only put off the next refusal. Each program is run into the
// refusal, and then as the advice has it.
func TestAdviceIsTrue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mem, rule string
		by              string   // what gets less: allocated, reserved, peak; "further": the program gets further
		env             []string // of the run that follows
		not             []string // advice that would be wrong, by its rule; with a capital letter, by words in it
		core            bool
	}{
		{"validation", "900M", "kept", "allocated", nil, []string{"longer-input", "activations", "fragmentation"},
			true},
		{"losses", "1G", "kept", "allocated", nil, []string{"longer-input", "activations", "fragmentation"}, false},
		{"unstepped", "900M", "kept", "allocated", nil, []string{"activations", "fragmentation"}, false},
		{"results", "700M", "kept", "allocated", nil, []string{"activations", "fragmentation"}, false},
		{"state", "700M", "kept", "allocated", nil, []string{"longer-input", "fragmentation"}, false},
		{"batch", "2G", "activations", "allocated", nil, []string{"kept", "longer-input"}, false},
		{"longer", "1500M", "longer-input", "peak", nil, []string{"kept"}, false},
		{"weights", "2G", "parameters", "allocated", nil, []string{"kept", "activations"}, false},
		{"copies", "2200M", "autocast-copies", "allocated", nil, []string{"kept", "activations"}, false},
		{"graphs", "1500M", "private-pools", "reserved", nil, []string{"kept", "fragmentation", "activations"}, true},
		{"twice", "1500M", "loaded-twice", "allocated", nil, []string{"kept"}, false},
		{"accumulated", "1500M", "activations", "allocated", nil, []string{"kept", "longer-input"}, false},
		{"recurrent", "1G", "activations", "allocated", nil, []string{"kept"}, false},
		{"attempts", "3G", "failed-attempts", "left", nil, []string{"activations", "untagged"}, false},
		{"limit", "8G", "own-limit", "", nil, []string{"fragmentation", "untagged"}, false},
		{"holes", "9G", "fragmentation", "further",
			[]string{"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"}, []string{"kept"}, false},
		{"adam", "1200M", "optimizer-state", "allocated", nil, []string{"kept", "parameters"}, false},
		{"half_adam", "900M", "optimizer-state", "allocated", nil, []string{"kept", "Half precision"}, true},
		{"shard", "1500M", "parameters", "allocated", nil, []string{"kept", "Half precision gives"}, false},
		{"generation", "1200M", "activations", "allocated", nil, []string{"kept", "Gradient checkpointing"},
			false},
		{"outside", "1000M", "idle-cache", "reserved", nil, []string{"fragmentation", "untagged"}, false},
		{"beside", "1500M", "other-processes", "further", nil, []string{"kept", "fragmentation"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if !c.core {
				extended(t)
			}
			mem := "NULLCUDA_MEM=" + c.mem
			refused := program{framework: torch27, args: []string{"refused.py", c.name}, env: []string{mem}}.record(t)
			e := failedEvent(t, refused.trace)
			n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == c.rule })
			if n < 0 {
				t.Fatalf("%s is not said: %+v", c.rule, e.Advice)
			}
			for _, a := range e.Advice {
				if slices.ContainsFunc(c.not, func(not string) bool {
					return not == a.Rule || unicode.IsUpper(rune(not[0])) && strings.Contains(a.Text, not)
				}) {
					t.Errorf("said: %s", a.Text)
				}
			}
			args := []string{"refused.py", c.name, "--followed"}
			if c.by != "further" {
				args, mem = append(args, "--stop", strconv.Itoa(pointOf(t, refused).Points)), "NULLCUDA_MEM=80G"
			}
			if c.by == "" { // it is all that was in the way
				if r := (program{framework: torch27, args: args[:3], env: []string{"NULLCUDA_MEM=" + c.mem},
					plain: true}).record(t); r.stdout != "" {
					t.Errorf("refused again: %s", r.stdout)
				}
				return
			}
			p := pointOf(t, program{framework: torch27, args: args, env: append(c.env, mem), plain: true}.record(t))
			got := map[string]int64{"allocated": int64(e.AllocatedBytes) - int64(p.Allocated),
				"reserved": int64(e.Allocator.ReservedBytes) - int64(p.Reserved),
				"peak":     int64(e.AllocatedBytes) - int64(p.Peak),
				"further":  int64(p.Allocated) - int64(e.AllocatedBytes)}[c.by]
			for _, r := range jsonReport(t, refused.trace).OOM.Retries {
				if c.by == "left" {
					got = int64(r.LiveBytes) - int64(p.Allocated)
				}
			}
			says := int64(e.Advice[n].FreesBytes)
			if got < says-says/10-int64(e.RequestedBytes) || got > says+says/10+int64(e.RequestedBytes) {
				t.Errorf("%s\nit gives %d MiB (%+v; refused %d MiB)", e.Advice[n].Text, got>>20, p,
					e.RequestedBytes>>20)
			}
		})
	}
}

// A request that no device has is told as that, with its size, and with nothing that frees memory.
func TestAbsurdRequest(t *testing.T) {
	t.Parallel()
	const source = `
import torch
weights = torch.zeros(1 << 20, device="cuda")
try:
    torch.zeros(1 << 28, 1 << 28, device="cuda")
except torch.OutOfMemoryError:
    pass
`
	r := program{framework: torch27, args: []string{"absurd.py"}, source: source}.record(t)
	e := failedEvent(t, r.trace)
	equal(t, "requested", e.RequestedBytes, uint64(1<<58))
	for _, a := range e.Advice {
		if a.Rule != "larger-than-device" && a.Rule != "null-gpu" {
			t.Errorf("said: %s", a.Text)
		}
	}
	texts := sidecars(t, r.trace)
	if text := texts[e.Sidecar]; !strings.Contains(text, "256.0 PiB") || !strings.Contains(text, "was computed") {
		t.Errorf("%v", texts)
	}
}

// Gradients of parameters that no optimizer has are named, also where the model is a local variable.
func TestNamesLooseGradients(t *testing.T) {
	t.Parallel()
	const source = `
import torch
from torch import nn

def main():
    net = nn.ModuleDict({"teacher": nn.Linear(1024, 1024), "student": nn.Linear(1024, 1024)}).cuda()
    optimizer = torch.optim.SGD(net["student"].parameters(), lr=0.1)
    for step in range(6):
        x = torch.zeros(64, 1024, device="cuda")
        (net["teacher"](x) - net["student"](x)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

main()
`
	r := program{framework: torch27, args: []string{"loose.py"}, source: source}.record(t)
	for _, p := range value(jsonReport(t, r.trace).Training).Parameters {
		if strings.HasSuffix(p.Name, "weight") {
			equal(t, "gradient of "+p.Name, p.Gradient, uint64(4<<20))
		}
	}
}

// What DistributedDataParallel sends gradients in is not counted as parameters. It is as large as they are.
func TestBucketsAreNoParameters(t *testing.T) {
	t.Parallel()
	extended(t)
	const source = `
import torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo", init_method="file://" + __file__ + ".init", rank=0, world_size=1)
net = nn.Sequential(*(nn.Linear(1024, 1024, bias=False) for _ in range(10))).cuda()
ddp = nn.parallel.DistributedDataParallel(net, device_ids=[0])
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for _ in range(3):
    ddp(torch.zeros(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
`
	r := program{framework: torch27, args: []string{"buckets.py"}, source: source}.record(t)
	training := value(jsonReport(t, r.trace).Training)
	held := training.Iterations[training.Highest].Peak.Held
	for _, category := range []string{"Parameters", "Communication buckets", "Gradients"} {
		n := slices.Index(training.Categories, category)
		if n < 0 {
			t.Fatalf("no %s among %q", category, training.Categories)
		}
		equal(t, category, held[n], uint64(40<<20))
	}
}
