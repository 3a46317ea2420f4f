//go:build e2e

package e2e

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// growing trains a little, holds pinned memory beside it, and then takes more at every line that it reads.
const growing = `
import sys
import torch
from torch import nn
import memtrace

width = int(sys.argv[1])
with memtrace.tag("model"):
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).cuda()
optimizer = torch.optim.Adam(model.parameters())
with memtrace.tag("pinned"):
    pinned = [torch.empty(n, pin_memory=True) for n in (1000, 1000000)]
kept = []
while True:
    with memtrace.tag("step"):
        optimizer.zero_grad()
        model(torch.ones(64, width, device="cuda")).sum().backward()
    with memtrace.tag("optimizer"):
        optimizer.step()
    torch.cuda.synchronize()
    print("ready", torch.cuda.memory_allocated(), flush=True)
    if not sys.stdin.readline():
        break
    with memtrace.tag("kept"):
        kept.append(torch.empty(200000000, dtype=torch.uint8, device="cuda"))
`

func deviceReportOf(t *testing.T, trace string, args ...string) *report.DeviceReport {
	t.Helper()
	rep := jsonReport(t, trace, args...)
	if rep.DeviceLedger == nil {
		t.Fatal("the report has no device ledger")
	}
	return rep.DeviceLedger
}

// ledgerEnv is an environment with one device for the guests of a test.
func ledgerEnv(t *testing.T, more ...string) []string {
	t.Helper()
	return accountIn(filepath.Join(t.TempDir(), "account"), more...)
}

// accountIn are the settings of a null GPU with an account in a file.
func accountIn(account string, more ...string) []string {
	return append([]string{"NULLCUDA_SHARED=" + account, "NULLCUDA_CONTEXT=300M", "NULLCUDA_MEM=16G",
		"NULLCUDA_RESERVED=500M"}, more...)
}

func writeGrowing(t *testing.T) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "growing.py")
	if err := os.WriteFile(script, []byte(growing), 0o600); err != nil {
		t.Fatal(err)
	}
	return script
}

// settledShare waits until a running guest's trace holds a settled sample that lists processes and at which the program
// used so much.
func settledShare(t *testing.T, g *pausedGuest, own uint64) *report.DeviceReport {
	t.Helper()
	var r *report.DeviceReport
	until(t, fmt.Sprintf("a settled sample with %d bytes of its own", own), func() bool {
		r = deviceReportOf(t, g.trace)
		return len(r.Devices) == 1 && slices.ContainsFunc(r.Devices[0].Samples, func(s report.Sample) bool {
			return s.Settled && s.ShareKnown && s.OwnBytes == own
		})
	})
	return r
}

// checkLedger requires that a ledger adds up to what the device reports, and that this is what the null driver has
// charged to all processes, to the byte.
func checkLedger(t *testing.T, what string, l report.DeviceLedger, own, others uint64) {
	t.Helper()
	s := l.Sample
	rows := map[string]int64{}
	var sum, tracked int64
	for _, r := range l.Rows {
		sum += r.Bytes
		rows[r.Owner] += r.Bytes
		switch r.Owner {
		case "blocks", "slack", "outside", "rounding", "pool_idle":
			tracked += r.Bytes
		}
	}
	equal(t, what+"the rows' sum", uint64(sum), s.UsedBytes)
	equal(t, what+"the device's use", s.UsedBytes, own+others+500<<20)
	equal(t, what+"this process", s.OwnBytes, own)
	equal(t, what+"other processes", s.OthersBytes, others)
	equal(t, what+"kept by the driver", s.KeptBytes, 500<<20)
	equal(t, what+"the context", s.ContextBytes, 300<<20)
	equal(t, what+"this process by owner", uint64(tracked), own-300<<20)
	if s.RemainderBytes != 0 || rows["remainder"] != 0 || rows["unlisted"] != 0 || !s.Settled || !s.ShareKnown {
		t.Errorf("%s%+v %v", what, s, rows)
	}
}

// ledgersOf lists the ledgers of the first device at a moment.
func ledgersOf(r *report.DeviceReport, moment string) (list []report.DeviceLedger) {
	for _, l := range r.Devices[0].Ledgers {
		if l.Moment == moment {
			list = append(list, l)
		}
	}
	return list
}

// Two programs train on one device, with pinned memory beside. At every sample of both, what the device reports as used
// = this process by owner + other processes + context + what the driver keeps, without a remainder.
func TestDeviceLedger(t *testing.T) {
	t.Parallel()
	script, env := writeGrowing(t), ledgerEnv(t)
	guests := []*pausedGuest{startPaused(t, script, 1024, env...)}
	guests[0].waitReady(t)
	guests = append(guests, startPaused(t, script, 1500, env...))
	guests[1].waitReady(t)
	for stage := range 2 {
		for i, g := range guests {
			io.WriteString(g.in, "more\n")
			g.waitReady(t)
			own, others := g.occupied(t), guests[1-i].occupied(t)
			what := fmt.Sprintf("guest %d, stage %d: ", i, stage)
			r := settledShare(t, g, own)
			found := false
			for _, l := range r.Devices[0].Ledgers {
				if l.Moment == "last" && l.Sample.OwnBytes == own {
					checkLedger(t, what+l.By+": ", l, own, others)
					found = true
				}
			}
			if !found {
				t.Errorf("%sno ledger of the sample: %+v", what, r.Devices[0].Ledgers)
			}
		}
	}
	for i, g := range guests {
		own, others := g.occupied(t), guests[1-i].occupied(t)
		if i == 1 {
			others = 0 // it has ended
		}
		g.in.Close()
		if err := g.cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		checkEndedGuest(t, fmt.Sprintf("guest %d, at its end: ", i), g, own, others)
	}
}

func checkEndedGuest(t *testing.T, what string, g *pausedGuest, own, others uint64) {
	t.Helper()
	r := deviceReportOf(t, g.trace, "--by", "tag,library,api")
	last := ledgersOf(r, "last")
	if len(last) != 3 || last[0].Sample.Occasion != "exit" {
		t.Fatalf("%s%d ledgers of the last sample: %+v", what, len(last), last)
	}
	for _, l := range last {
		checkLedger(t, what+l.By+": ", l, own, others)
	}
	kept := false // Python has freed it by the end
	for _, l := range ledgersOf(r, "highest") {
		checkLedger(t, what+"highest, "+l.By+": ", l, l.Sample.OwnBytes, l.Sample.OthersBytes)
		for _, row := range l.Rows {
			kept = kept || l.By == "tag" && row.Key == "kept" && row.Bytes >= 400000000
		}
	}
	if !kept {
		t.Errorf("%sno ledger names what was kept: %+v", what, ledgersOf(r, "highest"))
	}
	occasions := map[string]int{}
	for _, s := range r.Devices[0].Samples {
		occasions[s.Occasion]++
		if s.Settled && s.ShareKnown && (s.RemainderBytes != 0 ||
			s.UsedBytes != s.TrackedBytes+s.ContextBytes+s.OthersBytes+s.KeptBytes) {
			t.Errorf("%s%+v", what, s)
		}
	}
	if occasions["context"] == 0 || occasions["exit"] != 1 {
		t.Errorf("%ssamples %v", what, occasions)
	}
	text := memtrace(t, "report", "--details", g.trace)
	for _, words := range []string{"What fills device 0", "CUDA context and code", "kept by driver and firmware",
		"unexplained", "the device"} {
		if !strings.Contains(text, words) {
			t.Errorf("%sthe report does not say %q", what, words)
		}
	}
}

// The same with the driver's own pools, whose idle memory only the driver knows, and with segments that grow.
func TestDeviceLedgerOfAllocators(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, config := range []string{"backend:cudaMallocAsync", "expandable_segments:True"} {
		t.Run(config, func(t *testing.T) {
			t.Parallel()
			g := startPaused(t, writeGrowing(t), 1024, ledgerEnv(t, "PYTORCH_CUDA_ALLOC_CONF="+config)...)
			g.waitReady(t)
			io.WriteString(g.in, "more\n")
			g.waitReady(t)
			own := g.occupied(t)
			settledShare(t, g, own)
			g.in.Close()
			if err := g.cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			r := deviceReportOf(t, g.trace, "--at", "exit")
			for _, l := range r.Devices[0].Ledgers {
				checkLedger(t, l.By+": ", l, g.occupied(t), 0)
			}
			if len(r.Devices[0].Ledgers) == 0 {
				t.Error("no ledgers")
			}
		})
	}
}

// Two devices in one process: each has its own ledger, with its own context.
func TestDeviceLedgerOfTwoDevices(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"two_devices.py"},
		env: accountIn("DIR/account", "NULLCUDA_DEVICES=2")}
	r := deviceReportOf(t, p.record(t).trace, "--at", "exit")
	if len(r.Devices) != 2 {
		t.Fatalf("%+v", r)
	}
	for _, d := range r.Devices {
		for _, l := range d.Ledgers {
			checkLedger(t, fmt.Sprintf("device %d by %s: ", d.Index, l.By), l, l.Sample.OwnBytes, 0)
			if l.Sample.TrackedBytes == 0 {
				t.Errorf("device %d: nothing is tracked", d.Index)
			}
		}
	}
}

// Where the device does not report enough, the report shows that, and the rest is one figure.
func TestDeviceLedgerWithoutShares(t *testing.T) {
	t.Parallel()
	extended(t)
	for mode, says := range map[string]string{"foreign-pids": "container", "no-processes": "WSL"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := program{framework: torch27, args: []string{"resnet.py", "--steps", "1"},
				env: accountIn("DIR/account", "NULLCUDA_NVML="+mode)}
			run := p.record(t)
			r := deviceReportOf(t, run.trace, "--at", "exit")
			if len(r.Devices) != 1 || !strings.Contains(strings.Join(r.Notes, "\n"), says) {
				t.Fatalf("%+v", r)
			}
			for _, l := range r.Devices[0].Ledgers {
				var sum int64
				for _, row := range l.Rows {
					sum += row.Bytes
				}
				if l.Sample.ShareKnown || uint64(sum) != l.Sample.UsedBytes || l.Sample.RemainderBytes != 300<<20 {
					t.Errorf("%+v", l)
				}
			}
			if text := memtrace(t, "report", "--details", run.trace); !strings.Contains(text,
				"context, code, other processes") || !strings.Contains(text, says) {
				t.Errorf("the report does not say what is missing:\n%s", text)
			}
		})
	}
}

// On a slice of a GPU, and where the device counts pages, the figures hold as well; what pages add is shown.
func TestDeviceLedgerOfSlicesAndPages(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"resnet.py", "--steps", "1"},
		env: accountIn("DIR/account", "NULLCUDA_NVML=mig")}
	r := deviceReportOf(t, p.record(t).trace, "--at", "exit")
	if len(r.Devices) != 1 || !strings.Contains(strings.Join(r.Notes, "\n"), "MIG") {
		t.Fatalf("%+v", r)
	}
	checkLedger(t, "slice: ", r.Devices[0].Ledgers[0], r.Devices[0].Ledgers[0].Sample.OwnBytes, 0)

	g := startPaused(t, writeGrowing(t), 1024, ledgerEnv(t, "NULLCUDA_PAGES=2M", "PYTORCH_NO_CUDA_MEMORY_CACHING=1")...)
	g.waitReady(t)
	io.WriteString(g.in, "more\n")
	g.waitReady(t)
	r = settledShare(t, g, g.occupied(t))
	l := ledgersOf(r, "last")[0]
	if l.PartialPageBytes == 0 || l.Sample.ContextBytes != 300<<20 ||
		l.Sample.RemainderBytes != int64(l.PartialPageBytes) {
		t.Errorf("%+v", l)
	}
}

// Switched off, or on a system without the library, there is a sentence instead of figures, and nothing else changes.
func TestDeviceLedgerOff(t *testing.T) {
	t.Parallel()
	extended(t)
	p := program{framework: torch27, args: []string{"resnet.py", "--steps", "1"},
		env: accountIn("DIR/account", "MEMTRACE_NVML=0")}
	run := p.record(t)
	if r := deviceReportOf(t, run.trace); r.Status != "off" || r.Why != "MEMTRACE_NVML=0" || len(r.Devices) != 0 {
		t.Errorf("%+v", r)
	}
	if text := memtrace(t, "report", "--details", run.trace); !strings.Contains(text, "MEMTRACE_NVML=0") ||
		strings.Contains(text, "What fills") {
		t.Errorf("the report does not say why there are no figures:\n%s", text)
	}
	compareAccounts(t, run)
}
