//go:build e2e

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pausing trains in stages: after each it prints what the framework has allocated and waits for a line.
const pausing = `
import sys
import torch
from torch import nn
import memtrace

width = int(sys.argv[1])
with memtrace.tag("model"):
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
while True:
    for _ in range(3):
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
        kept.append(torch.empty(40 << 20, dtype=torch.uint8, device="cuda"))
`

// topOutput mirrors what the test reads of docs/top.md.
type topOutput struct {
	NVML struct {
		Available bool `json:"available"`
	} `json:"nvml"`
	Devices []struct {
		Index int     `json:"index"`
		Total *uint64 `json:"total_bytes"`
		Used  *uint64 `json:"used_bytes"`
		Free  *uint64 `json:"free_bytes"`
	} `json:"devices"`
	Processes []topProcess `json:"processes"`
}

type topProcess struct {
	PID     int    `json:"pid"`
	Traced  bool   `json:"traced"`
	Trace   string `json:"trace"`
	Devices []struct {
		Index int     `json:"index"`
		Used  *uint64 `json:"used_bytes"`
	} `json:"devices"`
	Untracked *int64 `json:"untracked_bytes"`
	Problem   string `json:"problem"`
	Owners    *struct {
		DriverBytes    uint64 `json:"driver_bytes"`
		FrameworkBytes uint64 `json:"framework_bytes"`
		Rows           []struct {
			Owner string `json:"owner"`
			Key   string `json:"key"`
			Bytes uint64 `json:"bytes"`
		} `json:"rows"`
	} `json:"owners"`
}

// pausedGuest is a program between two stages.
type pausedGuest struct {
	*result
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Scanner
	allocated uint64 // in the framework's words
}

func startPaused(t *testing.T, script string, width int, env ...string) *pausedGuest {
	t.Helper()
	cmd, r := program{framework: torch27, args: []string{"x", strconv.Itoa(width)}, env: env}.start(t)
	cmd.Args[len(cmd.Args)-2] = script
	g := &pausedGuest{result: r, cmd: cmd}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g.in, g.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		in.Close()
		cmd.Wait()
	})
	return g
}

func (g *pausedGuest) waitReady(t *testing.T) {
	t.Helper()
	if !g.out.Scan() {
		t.Fatal("the guest ended before it was ready")
	}
	if _, err := fmt.Sscanf(g.out.Text(), "ready %d", &g.allocated); err != nil {
		t.Fatalf("%q: %v", g.out.Text(), err)
	}
}

// occupied returns what the null driver charges the process on its device, by its own log.
func (g *pausedGuest) occupied(t *testing.T) uint64 {
	t.Helper()
	text, err := os.ReadFile(g.log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	fields := strings.Fields(lines[len(lines)-1])
	charged, err := strconv.ParseUint(fields[len(fields)-1], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return charged
}

// live returns the driver memory that the program requested and did not free, by the null driver's log.
func (g *pausedGuest) live(t *testing.T) (bytes uint64) {
	t.Helper()
	for _, c := range driverLog(t, g.log) {
		switch {
		case c.Kind == "host" || c.Kind == "managed":
		case c.Op == "alloc":
			bytes += c.Size
		case c.Op == "free":
			bytes -= c.Size
		}
	}
	return bytes
}

func topJSON(t *testing.T, env []string, args ...string) topOutput {
	t.Helper()
	cmd := exec.Command(command(), append([]string{"top", "--once", "--json"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var top topOutput
	if err := json.Unmarshal(out, &top); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return top
}

func (top *topOutput) process(pid int) *topProcess {
	for i := range top.Processes {
		if top.Processes[i].PID == pid {
			return &top.Processes[i]
		}
	}
	return nil
}

// Two programs train on one device. What top shows of the device and of each process is what the null driver has
// charged, to the byte; their owners add up to the driver memory that each program holds, and the rest of the process's
// memory is its context.
func TestTop(t *testing.T) {
	t.Parallel()
	const context = 300 << 20
	dir := t.TempDir()
	script := filepath.Join(dir, "pausing.py")
	if err := os.WriteFile(script, []byte(pausing), 0o600); err != nil {
		t.Fatal(err)
	}
	own := "MEMTRACE_CONTROL_DIR=" + filepath.Join(dir, "sockets") // else top reads whatever other tests record
	env := []string{own, "NULLCUDA_SHARED=" + filepath.Join(dir, "account"), "NULLCUDA_CONTEXT=300M",
		"NULLCUDA_MEM=16G"}
	guests := []*pausedGuest{
		startPaused(t, script, 1024, env...),
		startPaused(t, script, 2048, append(env, "MEMTRACE_SPOOL_DIR="+filepath.Join(dir, "spools"))...),
	}
	env = append(env, "LD_LIBRARY_PATH="+filepath.Join(venv(t, torch27, "python3"), "nullcuda"))
	for stage := range 3 {
		var all uint64
		for _, g := range guests {
			if stage > 0 {
				io.WriteString(g.in, "more\n")
			}
			g.waitReady(t)
			all += g.occupied(t)
		}
		top := topJSON(t, env)
		if len(top.Devices) != 1 || !top.NVML.Available || top.Devices[0].Used == nil {
			t.Fatalf("stage %d: %+v", stage, top)
		}
		equal(t, fmt.Sprintf("stage %d: the device's use", stage), *top.Devices[0].Used, all)
		equal(t, "the device's size", *top.Devices[0].Total, 16<<30)
		for i, g := range guests {
			what := fmt.Sprintf("stage %d, guest %d: ", stage, i)
			p := top.process(g.cmd.Process.Pid)
			if p == nil || !p.Traced || p.Owners == nil || len(p.Devices) != 1 || p.Devices[0].Used == nil ||
				p.Untracked == nil {
				t.Fatalf("%s%+v", what, p)
			}
			if p.Trace != g.trace {
				t.Errorf("%strace %q, want %q", what, p.Trace, g.trace)
			}
			equal(t, what+"its use", *p.Devices[0].Used, g.occupied(t))
			equal(t, what+"driver memory", p.Owners.DriverBytes, g.live(t))
			equal(t, what+"framework memory", p.Owners.FrameworkBytes, g.allocated)
			equal(t, what+"the context", uint64(*p.Untracked), context)
			var sum, kept uint64
			for _, row := range p.Owners.Rows {
				sum += row.Bytes
				if row.Key == "kept" {
					kept = row.Bytes
				}
			}
			equal(t, what+"the owners' sum", sum, g.live(t))
			equal(t, what+"tag kept", kept, uint64(stage)*(40<<20))
		}
	}
	checkTopWithoutLibrary(t, guests, own)
	guests[0].in.Close()
	guests[0].cmd.Wait()
	if top := topJSON(t, env); top.process(guests[0].cmd.Process.Pid) != nil ||
		top.process(guests[1].cmd.Process.Pid) == nil {
		t.Errorf("after a guest's end: %+v", top.Processes)
	}
}

// Without the management library, the same processes have the same owners, and a trace's folder named by hand finds no
// process twice.
func checkTopWithoutLibrary(t *testing.T, guests []*pausedGuest, own string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "libnvidia-ml.so.1"), []byte("no library"), 0o600); err != nil {
		t.Fatal(err)
	}
	top := topJSON(t, []string{own, "LD_LIBRARY_PATH=" + dir}, filepath.Dir(guests[0].trace), guests[1].trace)
	if top.NVML.Available || len(top.Devices) != 0 {
		t.Errorf("%+v", top)
	}
	seen := map[int]int{}
	for _, p := range top.Processes {
		seen[p.PID]++
	}
	for _, g := range guests {
		p := top.process(g.cmd.Process.Pid)
		if p == nil || p.Owners == nil || seen[p.PID] != 1 {
			t.Fatalf("%d times, %+v", seen[g.cmd.Process.Pid], p)
		}
		equal(t, "driver memory without the library", p.Owners.DriverBytes, g.live(t))
	}
}
