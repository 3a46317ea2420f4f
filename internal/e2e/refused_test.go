//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// refusal is a program that runs out of memory and what it is to be advised; of testdata/train/refused.json, which the
// check on a real GPU reads as well.
type refusal struct {
	Name, Rule  string
	MiB         int      // of the device
	By          string   // what gets less: allocated, reserved, peak, left; "further": the program gets further
	Environment []string // of the run that follows the advice
	Wrong       []string // advice that would be wrong, by its rule; with a capital letter, by words in it
	Core        bool
	Rare        bool // only in nightly runs: others are of the same kind
}

func refusals(t *testing.T) (list []refusal) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(), "testdata", "train", "refused.json"))
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil || len(list) < 20 {
		t.Fatalf("%d refusals: %v", len(list), err)
	}
	return list
}

// TestAdviceIsTrue: what is said to try when memory runs out gives back what it says, within a tenth and what the
// refused request is, and nothing is said that would only put off the next refusal. Each program is run into the
// refusal, and then as the advice has it.
func TestAdviceIsTrue(t *testing.T) {
	t.Parallel()
	for _, c := range refusals(t) {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			if !c.Core {
				extended(t)
			}
			rarely(t, c.Rare)
			mem := fmt.Sprintf("NULLCUDA_MEM=%dM", c.MiB)
			refused := program{framework: torch27, args: []string{"refused.py", c.Name},
				env: []string{mem}}.record(t)
			e := failedEvent(t, refused.trace)
			n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == c.Rule })
			if n < 0 {
				t.Fatalf("%s is not said: %+v", c.Rule, e.Advice)
			}
			for _, a := range e.Advice {
				if slices.ContainsFunc(c.Wrong, func(not string) bool {
					return not == a.Rule || unicode.IsUpper(rune(not[0])) && strings.Contains(a.Text, not)
				}) {
					t.Errorf("said: %s", a.Text)
				}
			}
			args := []string{"refused.py", c.Name, "--followed"}
			if c.By == "" { // it is all that was in the way
				again := program{framework: torch27, args: args, env: []string{mem}, plain: true}
				if r := again.record(t); r.stdout != "" {
					t.Errorf("refused again: %s", r.stdout)
				}
				return
			}
			if c.By != "further" {
				args, mem = append(args, "--stop", strconv.Itoa(pointOf(t, refused).Points)), "NULLCUDA_MEM=80G"
			}
			follow := program{framework: torch27, args: args, env: append(c.Environment, mem), plain: true}
			p := pointOf(t, follow.record(t))
			got := map[string]int64{"allocated": int64(e.AllocatedBytes) - int64(p.Allocated),
				"reserved": int64(e.Allocator.ReservedBytes) - int64(p.Reserved),
				"peak":     int64(e.AllocatedBytes) - int64(p.Peak),
				"further":  int64(p.Allocated) - int64(e.AllocatedBytes)}[c.By]
			for _, r := range jsonReport(t, refused.trace).OOM.Retries {
				if c.By == "left" {
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

// Where memory runs out in an optimizer's first step, which makes its state, the program's own text says that as the
// report does. It called the state temporary, for names of methods have their class in front since Python 3.11.
// Gradients are their parameters', also while the optimizer has them in a list: they were "variable grads of
// _init_group".
func TestFirstStep(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"refused.py", "first_step"},
		env: []string{"NULLCUDA_MEM=700M"}}
	r := p.record(t)
	e := failedEvent(t, r.trace)
	if len(e.Categories) == 0 || e.Categories[0].Category != "Optimizer state" {
		t.Errorf("the report: %+v", e.Categories)
	}
	text := sidecars(t, r.trace)[e.Sidecar]
	if !strings.Contains(text, "Optimizer state holds ") || strings.Contains(text, "without a tag") {
		t.Error(text)
	}
	gradients := false
	for _, h := range readKeptBy(t, r).Holders {
		gradients = gradients || strings.HasSuffix(h.Path, ".weight.grad")
		if strings.Contains(h.Path, "variable grads of") {
			t.Errorf("gradients are called %s", h.Path)
		}
	}
	if !gradients {
		t.Error("no gradients are named")
	}
}

// What layers read was counted among torch.autocast's copies of weights where it is as large as these: half of both was
// theirs.
func TestInputsAreNoCopies(t *testing.T) {
	t.Parallel()
	extended(t)
	const source = `
import torch
from torch import nn

net = nn.Sequential(*(part for _ in range(20) for part in (nn.LayerNorm(2048), nn.Linear(2048, 2048)))).cuda()
x = torch.randn(2048, 2048, device="cuda")
with torch.autocast("cuda", torch.float16):
    kept = net(x)
    try:
        torch.empty(600 << 20, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        pass
`
	r := program{framework: torch27, args: []string{"casts.py"}, source: source,
		env: []string{"NULLCUDA_MEM=1200M"}}.record(t)
	e := failedEvent(t, r.trace)
	n := slices.IndexFunc(e.Categories, func(c report.OOMCategory) bool {
		return c.Category == "Autocast weight copies"
	})
	const weights, biases = 20 * 8 << 20, 20 * 4 << 10
	if n < 0 || e.Categories[n].Bytes < weights || e.Categories[n].Bytes > weights+biases {
		t.Errorf("%+v", e.Categories)
	}
	const cache = "Where no backward pass needs them, torch.autocast(..., cache_enabled=False)"
	if n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == "autocast-copies" }); n < 0 ||
		!strings.Contains(e.Advice[n].Text, cache) {
		t.Errorf("%+v", e.Advice)
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
	extended(t)
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

// Memory that ran out in a backward pass was asked for "at autograd: MulBackward0", which is no line of the program's:
// the line whose gradients were computed is named, in the program and by the report.
func TestRefusedInABackwardPass(t *testing.T) {
	t.Parallel()
	const source = `
import torch

def doubled(w):
    return w * 2

w = torch.zeros(1 << 26, device="cuda", requires_grad=True)
kept = doubled(w)
kept.sum().backward()
`
	r := program{framework: torch27, args: []string{"double.py"}, source: source, mayFail: true,
		env: []string{"NULLCUDA_MEM=600M"}}.record(t)
	const want = "the backward pass of double.py:5 doubled"
	for i, e := range jsonReport(t, r.trace).OOM.Events {
		if e.Site != want || i > 0 {
			t.Errorf("asked for at %q, want %q", e.Site, want)
		}
		if text := sidecars(t, r.trace)[e.Sidecar]; !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	if text := memtrace(t, "report", r.trace); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
		t.Errorf("the report does not say %q:\n%s", want, text)
	}
}

// A refusal was told that segments that grow give back 620 MiB, where a run with them had 328 MiB less and was refused
// again: what is said is what such a run gives, and that it is not enough.
func TestGrowingIsNotEnough(t *testing.T) {
	t.Parallel()
	extended(t)
	const source = `
import torch

def empty(bytes):
    return torch.empty(bytes, dtype=torch.uint8, device="cuda")

def add(size):
    raw.append(empty(size))
    read, hidden = empty(4 << 20), empty(16 << 20)
    out = empty(16 << 20), empty(4 << 20)
    kept.append(empty(8 << 20))

raw, kept = [], []
for i in range(40):
    add(4096 * (20000 + 150 * i))
    del raw[:-30]
while raw:
    raw.pop(0)
    kept.append(empty(60000000))
try:
    empty(1600000000)
except torch.OutOfMemoryError:
    pass
`
	p := program{framework: torch27, args: []string{"packed.py"}, source: source, env: []string{"NULLCUDA_MEM=4G"}}
	e := failedEvent(t, p.record(t).trace)
	p.env = append(p.env, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")
	gives := int64(e.Allocator.ReservedBytes) - int64(failedEvent(t, p.record(t).trace).Allocator.ReservedBytes)
	n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == "fragmentation" })
	if n < 0 || !strings.Contains(e.Advice[n].Text, "that alone is not enough") {
		t.Fatalf("it gives %d MiB: %+v", gives>>20, e.Advice)
	}
	if says := int64(e.Advice[n].FreesBytes); gives < says-says/10 || gives > says+says/10 {
		t.Errorf("it gives %d MiB: %s", gives>>20, e.Advice[n].Text)
	}
}
