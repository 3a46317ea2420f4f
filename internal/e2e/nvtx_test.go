//go:build e2e

package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nvtxScript names what it does by torch's own NVTX calls, in the main thread and through emit_nvtx in the threads of backward. It prints what a program can
// see: its environment, the answers of the calls, its counters, its gradients.
const nvtxScript = `import os, torch
print("variable", os.environ.get("NVTX_INJECTION64_PATH"), os.getenv("NVTX_INJECTION64_PATH"))
print("environment", sorted(k for k in os.environ if k not in ("LD_PRELOAD", "MEMTRACE_OUTPUT")))
torch.manual_seed(0)
print("push", torch.cuda.nvtx.range_push("outer"))
x = torch.zeros(1000, 1000, device="cuda")
with torch.cuda.nvtx.range("inner"):
    y = torch.ones(500, 500, device="cuda")
print("pop", torch.cuda.nvtx.range_pop(), torch.cuda.nvtx.range_pop())
print("mark", torch.cuda.nvtx.mark("loaded"))
z = torch.zeros(300, 300, device="cuda")
weight = torch.zeros(100, 100, device="cuda", requires_grad=True)
with torch.autograd.profiler.emit_nvtx(record_shapes=True):
    for step in range(20):
        (weight @ weight).relu().sum().backward()
span = torch.cuda.nvtx.range_start("span")
print("start", span, "end", torch.cuda.nvtx.range_end(span))
print("peak", torch.cuda.max_memory_allocated(), "gradient", tuple(weight.grad.shape))
`

// runNvtx runs the script under a framework, with or without the library.
func runNvtx(t *testing.T, framework string, plain bool, env ...string) *result {
	t.Helper()
	script := filepath.Join(t.TempDir(), "ranges.py")
	if err := os.WriteFile(script, []byte(nvtxScript), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, r := program{framework: framework, args: []string{"x"}, plain: plain, env: env}.start(t)
	cmd.Args[len(cmd.Args)-1] = script
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	timer := time.AfterFunc(limit, func() { cmd.Process.Kill() })
	defer timer.Stop()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", framework, err, stdout.String(), stderr.String())
	}
	r.stdout, r.stderr = stdout.String(), stderr.String()
	return r
}

// torch's ranges name allocations, marks are there, and the program can see no difference.
func TestTorchNvtx(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			r, without := runNvtx(t, framework, false), runNvtx(t, framework, true)
			if r.stdout != without.stdout || r.stderr != without.stderr {
				t.Errorf("with the library\n%s%s\nwithout\n%s%s", r.stdout, r.stderr, without.stdout, without.stderr)
			}
			rep := jsonReport(t, r.trace, "--by", "tag")
			blocks := map[string]uint64{}
			for _, g := range rep.Groups {
				for _, row := range g.Rows {
					if g.Level == "framework" && g.By == "tag" {
						blocks[row.Key] += row.AllocCount
					}
				}
			}
			for tag, want := range map[string]uint64{"outer": 1, "outer.inner": 1} {
				equal(t, "blocks of "+tag, blocks[tag], want)
			}
			backward := uint64(0)
			for tag, n := range blocks {
				if strings.Contains(tag, "MmBackward0") && strings.HasSuffix(tag, "aten::mm") {
					backward += n
				}
				if strings.Contains(tag, "seq = ") || strings.Contains(tag, "op_id") || strings.Contains(tag, "sizes") {
					t.Errorf("tag %q differs in every step", tag)
				}
			}
			if backward < 40 {
				t.Errorf("%d blocks of backward's multiplications in 20 steps: %v", backward, blocks)
			}
			dump := memtrace(t, "dump", r.trace)
			for _, mark := range []string{"loaded", "span begin", "span end"} {
				if !strings.Contains(dump, mark) {
					t.Errorf("no mark %q", mark)
				}
			}
		})
	}
}

// Switched off, the program is the same and nothing has a name.
func TestTorchNvtxOff(t *testing.T) {
	t.Parallel()
	r := runNvtx(t, torch27, false, "MEMTRACE_NVTX=0")
	for _, g := range jsonReport(t, r.trace, "--by", "tag").Groups {
		for _, row := range g.Rows {
			if strings.Contains(row.Key, "outer") || strings.Contains(row.Key, "aten") {
				t.Errorf("tag %q", row.Key)
			}
		}
	}
}
