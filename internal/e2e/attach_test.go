//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/trace"
)

// attachable trains on request. Its output is the same whether it is attached to or not.
const attachable = `
import sys, threading, torch
from torch import nn
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
kept = []
def train(steps):
    for _ in range(steps):
        loss = model(torch.ones(64, 512, device="cuda")).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(torch.ones(len(kept) + 1, 700, device="cuda"))
    if len(kept) > 6:
        del kept[:5]
        torch.cuda.empty_cache()
def say(word):
    torch.cuda.synchronize()
    print(word, torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), flush=True)
threading.Thread(target=lambda: threading.Event().wait(), daemon=True).start()
train(2)
say("ready")
for line in sys.stdin:
    train(int(line))
    say("trained")
print("end", len(kept))
`

// attachedProgram is a program that reads commands from its standard input.
type attachedProgram struct {
	cmd    *exec.Cmd
	dir    string
	trace  string
	input  io.WriteCloser
	output *bufio.Reader
	errors bytes.Buffer
}

func startAttachable(t *testing.T, framework, python, script, settings string, preloaded bool,
	args ...string) *attachedProgram {
	t.Helper()
	path := filepath.Join(t.TempDir(), "attachable.py")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, r := program{framework: framework, python: python, args: append([]string{"x"}, args...), plain: !preloaded,
		env: []string{"PYTORCH_CUDA_ALLOC_CONF=" + settings}}.start(t)
	cmd.Args[len(cmd.Args)-1-len(args)] = path
	return startReported(t, cmd, r)
}

func startReported(t *testing.T, cmd *exec.Cmd, r *result) *attachedProgram {
	t.Helper()
	a := &attachedProgram{cmd: cmd, dir: r.dir, trace: r.trace}
	cmd.Stderr = &a.errors
	var err error
	if a.input, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		timer.Stop()
		cmd.Process.Kill()
		cmd.Wait()
	})
	a.output = bufio.NewReader(out)
	return a
}

// line returns the next line that begins with a word.
func (a *attachedProgram) line(t *testing.T, word string) string {
	t.Helper()
	line, err := a.output.ReadString('\n')
	if err != nil || !strings.HasPrefix(line, word) {
		a.cmd.Process.Kill()
		a.cmd.Wait()
		t.Fatalf("%v: %q, want %s\n%s", err, line, word, a.errors.String())
	}
	return line
}

func (a *attachedProgram) memtrace(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(command(), args...)
	cmd.Dir, cmd.Env = a.dir, append(os.Environ(), "MEMTRACE_LIBRARY="+library())
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("memtrace %s: %v\n%s", strings.Join(args, " "), err, text)
	}
	return string(text)
}

func (a *attachedProgram) pid() string { return strconv.Itoa(a.cmd.Process.Pid) }

func (a *attachedProgram) end(t *testing.T) {
	t.Helper()
	a.input.Close()
	a.line(t, "end")
	if err := a.cmd.Wait(); err != nil || a.errors.Len() > 0 {
		t.Errorf("%v\n%s", err, a.errors.String())
	}
}

// trainWatched has the program train between two marks, and returns its output.
func (a *attachedProgram) trainWatched(t *testing.T) (lines [3]string) {
	t.Helper()
	a.memtrace(t, "ctl", a.pid(), "mark", "begin")
	io.WriteString(a.input, "5\n")
	lines[0] = a.line(t, "trained")
	a.memtrace(t, "ctl", a.pid(), "mark", "end")
	a.memtrace(t, "ctl", a.pid(), "stop")
	io.WriteString(a.input, "3\n")
	lines[1] = a.line(t, "trained")
	a.end(t)
	return lines
}

// betweenMarks counts the events between two marks by all that does not depend on addresses.
func betweenMarks(t *testing.T, path string) map[string]int {
	t.Helper()
	events, reader := readEvents(t, path)
	tables, counts, inside := reader.Tables(), map[string]int{}, false
	for i := range events {
		e := &events[i]
		switch {
		case e.Kind == trace.EventMark:
			inside = tables.String(e.Name) == "begin"
		case inside && e.Kind != trace.EventSample && e.Kind != trace.EventName: // as often as there is time
			counts[fmt.Sprint(e.Kind, e.Level, e.Mem, e.API, e.Runtime, e.Device, e.Size, e.Rest, " ", e.Allocated,
				e.Reserved, pythonLines(tables, e))]++
		}
	}
	return counts
}

// TestAttach: from attaching on, the trace of a program has the events that it has under LD_PRELOAD, with the same
// sizes, requested sizes and call stacks; and what was there before has the sum that PyTorch reports.
func TestAttach(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, settings := range []string{"", "expandable_segments:True"} {
			t.Run(strings.TrimSuffix(framework+" "+settings, " "), func(t *testing.T) {
				t.Parallel()
				rarely(t, framework != torch27 && settings == "" || framework == torch27 && settings != "")
				preloaded := startAttachable(t, framework, "", attachable, settings, true)
				ready := preloaded.line(t, "ready")
				want := preloaded.trainWatched(t)
				attached := startAttachable(t, framework, "", attachable, settings, false)
				if line := attached.line(t, "ready"); line != ready {
					t.Fatalf("%q, preloaded %q", line, ready)
				}
				attached.memtrace(t, "attach", "-o", attached.trace, attached.pid())
				if got := attached.trainWatched(t); got != want {
					t.Errorf("the program says %q, preloaded %q", got, want)
				}
				checkAttached(t, attached.trace, ready, want[0], settings == "")
				events := betweenMarks(t, attached.trace)
				for key, count := range betweenMarks(t, preloaded.trace) {
					if events[key] != count {
						t.Errorf("%d times %s, under LD_PRELOAD %d times", events[key], key, count)
					}
					delete(events, key)
				}
				for key, count := range events {
					t.Errorf("%d times %s, and never under LD_PRELOAD", count, key)
				}
			})
		}
	}
}

// checkAttached compares a trace with PyTorch's figures at the two marks.
func checkAttached(t *testing.T, path, ready, trained string, native bool) {
	t.Helper()
	var allocated, reserved [2]uint64
	for i, line := range []string{ready, trained} {
		var word string
		if _, err := fmt.Sscan(line, &word, &allocated[i], &reserved[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i, mark := range []string{"mark:begin", "mark:end"} {
		rep := jsonReport(t, path, "--at", mark)
		same(t, mark+": bytes of blocks", float64(rep.At.Devices[0].Framework.LiveBytes), float64(allocated[i]))
		if native { // what is mapped has handles that only the program knows
			same(t, mark+": bytes of segments", float64(rep.At.Devices[0].Driver.LiveBytes), float64(reserved[i]))
			same(t, mark+": mismatches of reserved bytes", float64(rep.Health.ReservedMismatches), 0)
		}
		if !rep.Health.Complete || rep.Health.AllocatedMismatches != 0 {
			t.Errorf("%+v", rep.Health)
		}
	}
	text := memtrace(t, "report", path, "--at", "mark:begin")
	for _, part := range []string{" " + report.BeforeStart + " ", "recorded from", "after its start",
		"stopped by memtrace ctl"} {
		if !strings.Contains(text, part) {
			t.Errorf("the report does not say %q:\n%s", part, text)
		}
	}
}

// neverWaiting trains all the time, with loaders in processes of their own, and beside it a server answers and threads
// allocate.
const neverWaiting = `
import http.server, os, sys, threading, torch
from torch import nn
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.full((128,), float(i))
def main():
    model = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 128)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    def churn():
        while not over.is_set():
            [bytes(i * 37) for i in range(20)]
            torch.ones(1000, device="cuda")
            over.wait(0.001)
    over = threading.Event()
    others = [threading.Thread(target=churn) for _ in range(2)]
    loader = torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    for batch in loader: pass  # its processes are forked before there are threads
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for thread in others: thread.start()
    def wait():
        sys.stdin.readline()
        over.set()
    threading.Thread(target=wait, daemon=True).start()
    steps = 0
    while not over.is_set():
        for batch in loader:
            model(batch.cuda()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            steps += 1
            if steps == 10: print("ready", flush=True)
    for thread in others: thread.join()
    server.shutdown()
    torch.cuda.synchronize()
    print("end", steps > 10, torch.cuda.memory_allocated(), flush=True)
    sys.stdout.flush()
    os._exit(0)
main()
`

// TestAttachWhileTraining attaches to a program that never waits: threads allocate while their memory is scanned.
// PyTorch's own counter, which comes with each event, is the sum of what was there and what came and went since.
// ATTACHES makes the campaign longer.
func TestAttachWhileTraining(t *testing.T) {
	t.Parallel()
	extended(t)
	rounds := 2
	if n, err := strconv.Atoi(os.Getenv("ATTACHES")); err == nil {
		rounds = n
	}
	var stood []time.Duration
	for round := range rounds {
		settings := []string{"", "expandable_segments:True"}[round%2]
		a := startAttachable(t, []string{torch27, torch215}[round/2%2], "", neverWaiting, settings, false)
		a.line(t, "ready")
		said := a.memtrace(t, "attach", "-v", "-o", a.trace, a.pid())
		stood = append(stood, pauses(said)...)
		// it goes on
		until(t, fmt.Sprintf("round %d: the program goes on", round), func() bool {
			return jsonReport(t, a.trace).Framework.AllocCount >= 100
		})
		a.memtrace(t, "ctl", a.pid(), "stop")
		io.WriteString(a.input, "\n")
		a.line(t, "end True")
		if err := a.cmd.Wait(); err != nil || a.errors.Len() > 0 {
			t.Errorf("%v\n%s", err, a.errors.String())
		}
		rep := jsonReport(t, a.trace)
		if rep.Health.AllocatedMismatches != 0 || !rep.Health.Complete {
			t.Errorf("round %d: %d allocations, %+v", round, rep.Framework.AllocCount, rep.Health)
		}
	}
	slices.Sort(stood)
	t.Logf("%d attaches; a thread or the interpreter stood still for %v in the median, %v in 99 of 100, %v at most",
		rounds, stood[len(stood)/2], stood[len(stood)*99/100], stood[len(stood)-1])
}

// An attached program could stand still for ever: a Python thread that took the interpreter's lock between the snapshot
// and its thread's return waited, with that lock, for the recording to begin, which waited for the lock.
//
// Threads that take the lock from each other all the time go on while a recording begins.
func TestAttachBesideEagerThreads(t *testing.T) {
	t.Parallel()
	a := startAttachable(t, torch27, "", `
import sys, threading, torch
over = threading.Event()
def churn():
    x = torch.empty(1000, device="cuda", requires_grad=True)
    while not over.is_set():
        x.grad = torch.empty(1000, device="cuda")
        x.grad = None # PyTorch keeps the lock
torch.empty(1, device="cuda")
sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=churn) for _ in range(3)]
for thread in threads: thread.start()
print("ready", flush=True)
sys.stdin.readline()
over.set()
for thread in threads: thread.join()
print("end", flush=True)
`, "", false)
	a.line(t, "ready")
	a.memtrace(t, "attach", "-o", a.trace, a.pid())
	until(t, "the program goes on", func() bool { return jsonReport(t, a.trace).Framework.AllocCount >= 100 })
	a.memtrace(t, "ctl", a.pid(), "stop")
	io.WriteString(a.input, "\n")
	a.end(t)
}

// pauses returns how long the thread and the interpreter were stopped.
func pauses(said string) (list []time.Duration) {
	for _, line := range strings.Split(said, "\n") {
		if _, text, found := strings.Cut(line, "stood still for "); found {
			if d, err := time.ParseDuration(text); err == nil {
				list = append(list, d)
			}
		}
	}
	return list
}

const remotely = `
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
context, p = ctypes.c_void_p(), ctypes.c_uint64()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
def use(n, size):
    for _ in range(n):
        assert cuda["cuMemAlloc_v2"](ctypes.byref(p), ctypes.c_size_t(size)) == 0
        assert cuda["cuMemFree_v2"](p) == 0
use(10, 5001)
print("ready", flush=True)
for line in sys.stdin:
    use(10, int(line))
    print("used", flush=True)
print("end", flush=True)
`

// TestAttachByInterpreter: CPython from 3.14 on loads the library by itself, and no thread of it is stopped.
func TestAttachByInterpreter(t *testing.T) {
	t.Parallel()
	extended(t)
	python := interpreter(t, "3.14")
	dir := t.TempDir()
	script := filepath.Join(dir, "remotely.py")
	busy := strings.Replace(remotely, "for line in sys.stdin:",
		"import os, select\nwhile not select.select([0], [], [], 0)[0]: pass\nfor line in sys.stdin:", 1)
	if err := os.WriteFile(script, []byte(busy), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NULLCUDA_SHARED=none", "LD_LIBRARY_PATH="+filepath.Join(guest.Root(), "build",
		"nullcuda", "lib"))
	a := startReported(t, cmd, &result{dir: dir, trace: filepath.Join(dir, "t.bin")})
	a.line(t, "ready")
	said := a.memtrace(t, "attach", "-v", "--door", "python", "-o", a.trace, a.pid())
	if strings.Contains(said, "thread") || !strings.Contains(said, "asking the interpreter") {
		t.Errorf("%s", said)
	}
	io.WriteString(a.input, "5002\n")
	a.line(t, "used")
	a.end(t)
	events, _ := readEvents(t, a.trace)
	counts := map[uint64]int{}
	for _, e := range events {
		if e.Kind == trace.EventAlloc {
			counts[e.Size]++
		}
	}
	if counts[5001] != 0 || counts[5002] != 10 {
		t.Errorf("%v", counts)
	}
}
