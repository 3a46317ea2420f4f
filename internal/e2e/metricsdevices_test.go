//go:build e2e

package e2e

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// spread holds blocks on two devices, runs out of memory twice, and prints what PyTorch counts.
const spread = `
import json
import os
import sys
import torch

blocks = [torch.ones(1 << 20, device="cuda:0"), torch.ones(3 << 20, device="cuda:1"), torch.ones(5, device="cuda:1")]
del blocks[2]
for _ in range(2):
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda:1")
    except torch.OutOfMemoryError:
        pass
torch.cuda.synchronize()
with open(os.environ["FIGURES"], "w") as file:
    json.dump([{"allocated": torch.cuda.memory_allocated(d), "reserved": torch.cuda.memory_reserved(d), "peak": torch.cuda.max_memory_allocated(d)} for d in range(2)], file)
print("ready", torch.cuda.memory_allocated(), flush=True)
sys.stdin.readline()
`

// A process with two devices has series for each of them, which agree with PyTorch; a call that failed for lack of
// memory is counted.
func TestMetricsOfTwoDevices(t *testing.T) {
	t.Parallel()
	extended(t)
	dir := t.TempDir()
	script, figures := filepath.Join(dir, "spread.py"), filepath.Join(dir, "figures.json")
	if err := os.WriteFile(script, []byte(spread), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"NULLCUDA_SHARED=" + filepath.Join(dir, "account"), "NULLCUDA_CONTEXT=300M", "NULLCUDA_MEM=16G",
		"NULLCUDA_DEVICES=2"}
	g := startPaused(t, script, 0, append(env, "FIGURES="+figures)...)
	g.waitReady(t)
	text, err := os.ReadFile(figures)
	if err != nil {
		t.Fatal(err)
	}
	var want []struct{ Allocated, Reserved, Peak float64 }
	if err := json.Unmarshal(text, &want); err != nil || len(want) != 2 {
		t.Fatalf("%v: %s", err, text)
	}
	env = append(env, "LD_LIBRARY_PATH="+filepath.Join(venv(t, torch27, ""), "nullcuda"))
	read := scrapeUntil(t, startMetrics(t, env, "--pid", strconv.Itoa(g.cmd.Process.Pid)), "its trace",
		func(read map[string]metricFamily) bool {
			return isWhole(read, 1)
		})
	for d, w := range want {
		with := func(pairs ...string) map[string]string {
			labels := map[string]string{"device": strconv.Itoa(d)}
			for i := 0; i+1 < len(pairs); i += 2 {
				labels[pairs[i]] = pairs[i+1]
			}
			return labels
		}
		same(t, "blocks", metricValue(t, read, "memtrace_memory_bytes", with("level", "framework")), w.Allocated)
		same(t, "driver memory", metricValue(t, read, "memtrace_memory_bytes", with("level", "driver")), w.Reserved)
		same(t, "the most blocks", metricValue(t, read, "memtrace_memory_peak_bytes", with("level", "framework")),
			w.Peak)
		same(t, "slack", metricValue(t, read, "memtrace_slack_bytes", with()), w.Reserved-w.Allocated)
		same(t, "remainder", metricValue(t, read, "memtrace_remainder_bytes", with()), 300<<20)
		same(t, "the owner", metricValue(t, read, "memtrace_owner_memory_bytes", with("level", "framework")),
			w.Allocated)
		same(t, "the category", metricValue(t, read, "memtrace_category_memory_bytes", with("level", "framework")),
			w.Allocated)
	}
	same(t, "out of memory", metricValue(t, read, "memtrace_out_of_memory_total",
		map[string]string{"outcome": "failed"}), 2)
	same(t, "recovered", metricValue(t, read, "memtrace_out_of_memory_total",
		map[string]string{"outcome": "recovered"}), 0)
	io.WriteString(g.in, "end\n")
}
