//go:build e2e

package e2e

import (
	"encoding/json"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// TestCUDAGraphs: a step that is captured and replayed, and a model made of graphs. PyTorch's counters agree to the
// byte, categories add up to them, and what the model has keeps its names.
func TestCUDAGraphs(t *testing.T) {
	t.Parallel()
	for _, framework := range []string{torch27, torch215} {
		for _, what := range []string{"step", "callables"} {
			t.Run(framework+"/"+what, func(t *testing.T) {
				t.Parallel()
				if what != "step" {
					extended(t)
				}
				rarely(t, framework != torch27 && what != "step")
				r := program{framework: framework,
					args: []string{"cuda_graphs.py", "--what", what, "--steps", "4", "--memory-stats",
						"STATS"}}.record(t)
				compareTorch(t, r)
				compareAccounts(t, r)
				compareGraphNames(t, trainingOf(t, r.trace))
				if what == "step" {
					comparePool(t, r)
				}
			})
		}
	}
}

// compareGraphNames: four steps are seen, the replays being none, and each weight has its gradient and Adam's two
// states.
func compareGraphNames(t *testing.T, tr *report.Training) {
	t.Helper()
	if tr.IterationsBy != "optimizer" || len(tr.Iterations) != 5 {
		t.Fatalf("%d iterations by %q, want 4 and what came after them", len(tr.Iterations), tr.IterationsBy)
	}
	others := column(t, tr, "Others")
	for _, it := range tr.Iterations {
		equal(t, "sum over the categories at the peak", addUp(it.Peak.Held), it.Peak.Bytes)
		if it.Peak.Held[others]*100 > it.Peak.Bytes {
			t.Errorf("iteration %d: %d of %d bytes are under Others", it.Number, it.Peak.Held[others], it.Peak.Bytes)
		}
	}
	if len(tr.Parameters) != 6 {
		t.Errorf("%d parameters, want 6", len(tr.Parameters))
	}
	for _, p := range tr.Parameters {
		equal(t, "gradient of "+p.Name, p.Gradient, p.Bytes)
		states := map[string]uint64{}
		for _, s := range p.States {
			states[s.Name] = s.Bytes
		}
		equal(t, "exp_avg of "+p.Name, states["exp_avg"], p.Bytes)
		equal(t, "exp_avg_sq of "+p.Name, states["exp_avg_sq"], p.Bytes)
		equal(t, "steps of "+p.Name, states["step"], 4) // on the device, so that a graph can count them
	}
}

// comparePool: what the graph holds in a pool of its own is what was taken from the device while it was captured; the
// blocks that are in use there were made then and live on.
func comparePool(t *testing.T, r *result) {
	t.Helper()
	var want struct{ Reserved, Allocated uint64 }
	if err := json.Unmarshal([]byte(r.stdout), &want); err != nil || want.Reserved == 0 || want.Allocated == 0 {
		t.Fatalf("%v: %s", err, r.stdout)
	}
	var reserved, allocated uint64
	made := map[uint64]uint64{} // blocks since the capture began
	capturing := false
	events, reader := readEvents(t, r.trace)
	for _, e := range events {
		switch {
		case e.Kind == trace.EventMark && reader.Tables().String(e.Name) == "stats":
			for _, bytes := range made {
				allocated += bytes
			}
			equal(t, "bytes that were reserved while capturing", reserved, want.Reserved)
			equal(t, "bytes of blocks that were made then and live", allocated, want.Allocated)
			return
		case e.Kind == trace.EventMark:
			capturing = reader.Tables().String(e.Name) == "capture"
		case e.Level == cuda.LevelFramework && e.Kind == trace.EventFree:
			delete(made, e.Addr)
		case !capturing || e.Kind != trace.EventAlloc || e.Status != 0:
		case e.Level == cuda.LevelFramework:
			made[e.Addr] = e.Size
		case e.Level == cuda.LevelDriver && e.Mem == cuda.MemoryDevice:
			reserved += e.Size
		}
	}
	t.Error("the program set no mark at its end")
}
