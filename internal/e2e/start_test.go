//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// starting trains a small model. Its argument is when it begins to record: before or after PyTorch is imported, after
// the first CUDA device query, or never.
const starting = `
import sys
import memtrace
when = sys.argv[1]
if when == "before":
    memtrace.start()
import torch
if when == "after":
    memtrace.start()
if when == "asked":
    assert torch.cuda.is_available()
    memtrace.start()
from torch import nn
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(4):
    memtrace.step(step)
    with memtrace.tag("forward"):
        loss = model(torch.ones(64, 512, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
del loss
torch.cuda.synchronize()
memtrace.mark("trained")
print("ready", torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), torch.cuda.memory_stats()["allocation.all.allocated"])
`

// TestStart: a program that calls memtrace.start() leaves the events that it leaves under LD_PRELOAD, with the same
// sizes, requested sizes, tags, names and call stacks, and PyTorch's own counts.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, settings := range []string{"", "expandable_segments:True"} {
			t.Run(strings.TrimSuffix(framework+" "+settings, " "), func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && settings == "" || framework == torch27 && settings != "")
				preloaded := recordStarting(t, framework, settings, "never")
				for _, when := range []string{"asked", "before", "after"} {
					if when != "asked" && (!reaches(complete) || framework != torch27 && !reaches(nightly)) {
						continue // the hardest is everywhere
					}
					started := recordStarting(t, framework, settings, when)
					for key, count := range preloaded {
						if started[key] != count {
							t.Errorf("%s: %d times %s, under LD_PRELOAD %d times", when, started[key], key, count)
						}
						delete(started, key)
					}
					for key, count := range started {
						t.Errorf("%s: %d times %s, and never under LD_PRELOAD", when, count, key)
					}
				}
			})
		}
	}
}

// recordStarting runs the program, compares the trace with PyTorch's figures, and counts the events by all that does
// not depend on addresses.
func recordStarting(t *testing.T, framework, settings, when string) map[string]int {
	t.Helper()
	r := program{framework: framework, source: starting, args: []string{"starting.py", when}, late: when != "never",
		env: []string{"PYTORCH_CUDA_ALLOC_CONF=" + settings}}.record(t)
	if warned := strings.Contains(r.stderr, "CUDA was in use before memtrace.start()"); warned != (when == "asked") {
		t.Errorf("%s: it says %q", when, r.stderr)
	}
	var allocated, most, count uint64
	if _, err := fmt.Sscanf(r.stdout, "ready %d %d %d", &allocated, &most, &count); err != nil {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	rep := jsonReport(t, r.trace, "--at", "mark:trained")
	same(t, when+": live bytes", float64(rep.At.Devices[0].Framework.LiveBytes), float64(allocated))
	same(t, when+": peak bytes", float64(rep.Framework.PeakBytes), float64(most))
	same(t, when+": allocations", float64(rep.Framework.AllocCount), float64(count))
	events, reader := readEvents(t, r.trace)
	tables := reader.Tables()
	counts := map[string]int{}
	for i := range events {
		e := &events[i]
		if e.Kind == trace.EventSample { // as often as there is time
			continue
		}
		if e.Kind == trace.EventName { // sent, and repeated, when the script in the interpreter has time
			counts[fmt.Sprint(e.Kind, e.Size, e.Category, " ", tables.String(e.Name))] = 1
			continue
		}
		counts[fmt.Sprint(e.Kind, e.Level, e.Mem, e.API, e.Runtime, e.Device, e.Size, e.Rest, e.Count, " ",
			tables.String(e.Tag), tables.String(e.Name), pythonLines(tables, e))]++
	}
	return counts
}

// pythonLines lists an event's Python call stack, innermost first.
func pythonLines(tables *trace.Tables, e *trace.Event) string {
	var lines []string
	frames, _ := tables.PyStack(e.PyStack)
	for _, frame := range frames {
		code, _ := tables.Code(frame.Code)
		line, _ := trace.DecodeLine(code.Table, code.Lines, code.FirstLine, frame.Offset)
		lines = append(lines, fmt.Sprintf("%s:%d", code.Name, line))
	}
	return strings.Join(lines, " < ")
}

// startingLate trains a little before it begins to record, and frees memory afterwards.
const startingLate = `
import torch
import memtrace
from torch import nn
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
def step():
    loss = model(torch.ones(64, 512, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
step()
large = torch.ones(3000, 1000, device="cuda")
memtrace.start()
memtrace.mark("started")
started = torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.memory_stats().get("requested_bytes.all.current", 0)
for _ in range(3):
    step()
del large
torch.cuda.empty_cache()
more = torch.ones(2000, 1000, device="cuda")
memtrace.mark("trained")
print("ready", *started, torch.cuda.memory_allocated(), torch.cuda.memory_reserved())
`

// TestStartLate: what PyTorch held when recording began is recorded with its own sizes, and what it frees later is
// known.
func TestStartLate(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch113, torch27, torch215} {
		for _, settings := range []string{"", "expandable_segments:True"} {
			if framework == torch113 && settings != "" { // which it does not have
				continue
			}
			t.Run(strings.TrimSuffix(framework+" "+settings, " "), func(t *testing.T) {
				t.Parallel()
				if settings != "" {
					extended(t)
				}
				r := program{framework: framework, source: startingLate,
					args: []string{"late.py"}, late: true,
					env: []string{"PYTORCH_CUDA_ALLOC_CONF=" + settings}}.record(t)
				var before, reservedBefore, requested, after, reserved uint64
				if _, err := fmt.Sscanf(r.stdout, "ready %d %d %d %d %d", &before, &reservedBefore, &requested,
					&after, &reserved); err != nil {
					t.Fatalf("%v\n%s%s", err, r.stdout, r.stderr)
				}
				started, trained := jsonReport(t, r.trace, "--at", "mark:started"),
					jsonReport(t, r.trace, "--at", "mark:trained")
				atStart, atEnd := started.At.Devices[0], trained.At.Devices[0]
				same(t, "bytes from before", float64(atStart.Framework.LiveBytes), float64(before))
				if requested > 0 { // it is reported
					same(t, "requested bytes from before", float64(atStart.Framework.Requested.Bytes),
						float64(requested))
				}
				same(t, "bytes afterwards", float64(atEnd.Framework.LiveBytes), float64(after))
				if h := trained.Health; !h.Complete || h.AllocatedMismatches != 0 {
					t.Errorf("%+v", h)
				}
				if settings == "" { // what is mapped has handles that only the program knows
					same(t, "frees without allocation", float64(trained.Health.UnmatchedFrees), 0)
					same(t, "driver memory from before", float64(atStart.Driver.LiveBytes), float64(reservedBefore))
					same(t, "driver memory afterwards", float64(atEnd.Driver.LiveBytes), float64(reserved))
					same(t, "mismatches of reserved bytes", float64(trained.Health.ReservedMismatches), 0)
				}
				if text := memtrace(t, "report", r.trace, "--at", "mark:started"); !strings.Contains(text, "\n  "+
					report.BeforeStart+" ") {
					t.Errorf("the report does not say what was there before:\n%s", text)
				}
			})
		}
	}
}
