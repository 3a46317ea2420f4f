//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// startReferring starts testdata/train/referrers.py, and waits until it has its tensors.
func startReferring(t *testing.T, p program) *attachedProgram {
	t.Helper()
	cmd, r := p.start(t)
	a := startReported(t, cmd, r)
	a.line(t, "ready")
	return a
}

// referrers is what memtrace ctl PID referrers finds.
func (a *attachedProgram) referrers(t *testing.T, flags ...string) []holder {
	t.Helper()
	cmd := exec.Command(command(), append([]string{"ctl", a.pid(), "referrers", "--json", "-n", "20"}, flags...)...)
	cmd.Dir = a.dir
	var log strings.Builder
	cmd.Stderr = &log
	text, err := cmd.Output()
	var found struct {
		Schema  string   `json:"schema"`
		Tensors int      `json:"tensors"`
		Late    bool     `json:"late"`
		Holders []holder `json:"holders"`
	}
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil || found.Schema != "memtrace.referrers/1" || found.Tensors < 70 || found.Late {
		t.Fatalf("%v\n%s%s", err, log.String(), text)
	}
	return found.Holders
}

// wantSite checks that all storages of a holder were allocated at one place.
func wantSite(t *testing.T, found []holder, path string, storages int, place string) {
	t.Helper()
	for _, h := range found {
		if h.Path == path && (len(h.Sites) != 1 || !strings.HasSuffix(h.Sites[0].Site, place) ||
			h.Sites[0].Storages != storages) {
			t.Errorf("%s was allocated at %+v, want %d at %s", path, h.Sites, storages, place)
		}
	}
}

// wantOrder checks which of two holders is listed first.
func wantOrder(t *testing.T, found []holder, first, second string) {
	t.Helper()
	at := func(path string) int { return slices.IndexFunc(found, func(h holder) bool { return h.Path == path }) }
	if at(first) < 0 || at(first) >= at(second) {
		t.Errorf("%s is number %d, %s number %d", first, at(first), second, at(second))
	}
}

// Gradients were left out.
//
// What refers to tensors is found from outside in a program that has not even the package, whether it waits or never
// does, and so are the lines at which they were allocated; nothing of it is left in the program.
func TestReferrersOfRunningProgram(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ framework, mode string }{
		{torch27, "wait"}, {torch27, "busy"}, {torch215, "wait"}, {torch215, "busy"},
	} {
		t.Run(c.framework+" "+c.mode, func(t *testing.T) {
			t.Parallel()
			a := startReferring(t, program{framework: c.framework, args: []string{"referrers.py", c.mode}})
			for range 3 {
				found := a.referrers(t)
				wantHolders(t, found, c.framework == torch215)
				wantSite(t, found, "__main__.server.cache['answers'][*]", 50, "referrers.py:30 zeros")
				wantSite(t, found, "__main__.staged[*]", 4, fmt.Sprintf("referrers.py:%d keep_all.<locals>.<genexpr>",
					lineOf(t, "referrers.py", "staged.extend")))
				wantSite(t, found, "__main__.losses[*]", 3, "referrers.py:50 graph")
				wantSite(t, found, "__main__.weight", 1,
					fmt.Sprintf("referrers.py:%d <module>", lineOf(t, "referrers.py", "weight =")))
				if c.framework == torch215 { // before, nothing says which graphs are freed
					wantOrder(t, found, "__main__.small", "__main__.spent")
				}
			}
			text := a.memtrace(t, "ctl", a.pid(), "referrers", "-n", "2")
			if strings.Count(text, "allocated at") != 2 ||
				!strings.Contains(text, "50 tensors, the largest float32 [262144] on cuda:0\n") {
				t.Errorf("%s", text)
			}
			a.letGo(t)
		})
	}
}

// letGo has the program drop a tensor, which no reference of the library may keep, and end.
func (a *attachedProgram) letGo(t *testing.T) {
	t.Helper()
	io.WriteString(a.input, "let go\n")
	if line := a.line(t, "released"); line != "released True False\n" && line != "end\n" {
		t.Errorf("%q", line)
	}
	a.end(t)
}

// In a program that was attached to, what was allocated before has no call stack; and once the recording has ended, the
// search goes on without places.
func TestReferrersAfterAttach(t *testing.T) {
	t.Parallel()
	extended(t)
	a := startReferring(t, program{framework: torch27, args: []string{"referrers.py", "wait"}, plain: true})
	if text, err := exec.Command(command(), "ctl", a.pid(), "referrers").CombinedOutput(); err == nil ||
		!strings.Contains(string(text), "to record it, type: memtrace attach") {
		t.Errorf("%v\n%s", err, text)
	}
	a.memtrace(t, "attach", "-o", a.trace, a.pid())
	found := a.referrers(t)
	wantHolders(t, found, false)
	wantSite(t, found, "__main__.history[*]", 20, "before recording began")
	until(t, "the trace names PyTorch", func() bool {
		a.memtrace(t, "ctl", a.pid(), "snapshot", "-f", "-o", "live.bin")
		return strings.Contains(a.memtrace(t, "report", "live.bin"), "PyTorch 2.7.1")
	})
	next := "memtrace ctl " + a.pid() + " referrers"
	if text := a.memtrace(t, "report", "live.bin"); !strings.Contains(text, next) {
		t.Errorf("the snapshot of a running process does not name %q:\n%s", next, text)
	}
	a.memtrace(t, "ctl", a.pid(), "stop")
	found = a.referrers(t)
	wantHolders(t, found, false)
	if found[0].Sites == nil || len(found[0].Sites) != 0 {
		t.Errorf("%+v", found[0])
	}
	if text := a.memtrace(t, "ctl", a.pid(), "referrers"); !strings.Contains(text, "nothing is recorded any more") ||
		strings.Contains(text, "allocated at") {
		t.Errorf("%s", text)
	}
	a.letGo(t)
	if text := a.memtrace(t, "report", "live.bin"); strings.Contains(text, next) {
		t.Errorf("the process has ended:\n%s", text)
	}
}

// A program that keeps the interpreter's lock is waited for only until the timeout, goes on undisturbed, and is
// searched once it releases the lock.
func TestReferrersOfDeafProgram(t *testing.T) {
	t.Parallel()
	extended(t)
	a := startReferring(t, program{framework: torch27, args: []string{"referrers.py", "deaf", "8"}})
	for range 3 {
		text, err := exec.Command(command(), "ctl", a.pid(), "referrers", "--timeout", "300ms").CombinedOutput()
		if err == nil || !strings.Contains(string(text), "its interpreter is busy") {
			t.Errorf("%v\n%s", err, text)
		}
	}
	if text := a.memtrace(t, "ctl", a.pid(), "status"); !strings.Contains(text, "is recorded in") {
		t.Errorf("%s", text)
	}
	wantHolders(t, a.referrers(t, "--timeout", "30s"), false)
	a.letGo(t)
}

// A Python program without PyTorch is distinguished from one without tensors.
func TestReferrersWithoutTorch(t *testing.T) {
	t.Parallel()
	extended(t)
	script := `
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
p = ctypes.c_uint64()
context = ctypes.c_void_p()
assert cuda.cuInit(0) == 0 and cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0) == 0
assert cuda["cuMemAlloc_v2"](ctypes.byref(p), ctypes.c_size_t(5001)) == 0
print("ready", flush=True)
if sys.stdin.readline().strip() == "torch":
    import torch
    print("ready", flush=True)
    sys.stdin.readline()
print("end", flush=True)
`
	a := startAttachable(t, torch27, "", script, "", true)
	a.line(t, "ready")
	if text, err := exec.Command(command(), "ctl", a.pid(), "referrers").CombinedOutput(); err == nil ||
		!strings.Contains(string(text), "PyTorch is not imported there") {
		t.Errorf("%v\n%s", err, text)
	}
	io.WriteString(a.input, "torch\n")
	a.line(t, "ready")
	if text := a.memtrace(t, "ctl", a.pid(), "referrers"); text != "No CUDA tensor was found.\n" {
		t.Errorf("%q", text)
	}
	io.WriteString(a.input, "end\n")
	a.end(t)
}

// A backward pass takes graphs apart while the search looks into them, which ended programs. While one is under way
// that does not end, tensors are found without their graphs and gradients, and that is said; afterwards with them.
func TestReferrersDuringABackwardPass(t *testing.T) {
	t.Parallel()
	extended(t)
	script := `
import sys, torch
weight = torch.ones(1 << 18, device="cuda", requires_grad=True)
def wait(gradient):
    print("ready", flush=True)
    sys.stdin.readline()
kept = (weight * 2).exp()
passed = (weight * 3).exp()
passed.register_hook(wait)
passed.sum().backward()
print("ready", flush=True)
sys.stdin.readline()
print("end", flush=True)
`
	a := startAttachable(t, torch27, "", script, "", true)
	const said = "A backward pass was under way the whole time"
	for _, under := range []bool{true, false} {
		a.line(t, "ready")
		text := strings.Join(strings.Fields(a.memtrace(t, "ctl", a.pid(), "referrers")), " ")
		if strings.Contains(text, said) != under || strings.Contains(text, "autograd graph of") == under ||
			strings.Contains(text, "__main__.weight.grad") == under || !strings.Contains(text, "__main__.kept") {
			t.Errorf("under way %v:\n%s", under, text)
		}
		io.WriteString(a.input, "go on\n")
	}
	a.end(t)
}

// An answer that is larger than any packet comes in several; a text that is longer than anybody reads is cut, and what
// a program calls its variables can forge no line of it.
func TestReferrersWithLongNames(t *testing.T) {
	t.Parallel()
	extended(t)
	script := `
import sys, torch
class Odd: pass
Odd.__qualname__ = Odd.__name__ = "a\tb\nforged\t1\x1b[2J" + "q" * 3000
odd = [Odd()]
odd[0].kept = [torch.zeros(1 << 20, device="cuda")]
classes = [type("x%03d" % i + "y" * 1500, (), {"kept": torch.zeros(1000 + i, device="cuda")}) for i in range(200)]
print("ready", flush=True)
sys.stdin.readline()
print("end", flush=True)
`
	a := startAttachable(t, torch27, "", script, "", true)
	a.line(t, "ready")
	found := a.referrers(t, "-n", "256")
	if len(found) != 201 || found[0].Path != "__main__.odd[*].kept[*]" || found[0].Bytes != 4<<20 ||
		found[1].Path != "__main__.x199"+strings.Repeat("y", 1500)+".kept" {
		t.Errorf("%d rows, %.5000q", len(found), fmt.Sprint(found))
	}
	if !strings.HasPrefix(found[0].Types, `module, list, a\tb\nforged\t1\x1b[2Jqqq`) || len(found[0].Types) > 2100 {
		t.Errorf("%q", found[0].Types)
	}
	a.end(t)
}

// A program that ends while it is searched ends as ever.
func TestReferrersAtTheEnd(t *testing.T) {
	t.Parallel()
	extended(t)
	for range 5 {
		a := startReferring(t, program{framework: torch27, args: []string{"referrers.py", "busy"}})
		searched, over := make(chan struct{}, 100), make(chan struct{})
		go func() {
			defer close(over)
			for i := 0; i < 100; i++ {
				if exec.Command(command(), "ctl", a.pid(), "referrers").Run() != nil {
					return
				}
				searched <- struct{}{}
			}
		}()
		<-searched
		a.end(t)
		<-over
	}
}
