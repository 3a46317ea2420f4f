//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"memtrace/cuda"
)

const jax = "jax-cuda12-plugin==0.6.2"

// runJAX trains with one of JAX's allocators. Kernels do nothing here: autotuning is pointless.
func runJAX(t *testing.T, allocator string, args ...string) *result {
	t.Helper()
	env := []string{"XLA_PYTHON_CLIENT_ALLOCATOR=" + allocator, "XLA_FLAGS=--xla_gpu_autotune_level=0",
		"TF_CPP_MIN_LOG_LEVEL=2"}
	r := program{framework: jax, env: env,
		args: append([]string{"jax_mlp.py", "--memory-stats", "STATS"}, args...)}.record(t)
	compareAccounts(t, r)
	return r
}

// buffersOf returns the program's live arrays: bytes by address.
func buffersOf(t *testing.T, counters map[string]any) map[uint64]uint64 {
	t.Helper()
	buffers := map[uint64]uint64{}
	for _, row := range counters["buffers"].([]any) {
		var pair [2]uint64
		for i, v := range row.([]any) {
			n, err := v.(json.Number).Int64()
			if err != nil {
				t.Fatal(err)
			}
			pair[i] = uint64(n)
		}
		buffers[pair[0]] = pair[1]
	}
	if len(buffers) == 0 {
		t.Fatal("the program has no arrays")
	}
	return buffers
}

// With its platform and its asynchronous allocator JAX requests every buffer from the driver: the live blocks are the
// live arrays, address by address and to the byte, and the asynchronous allocator's own counter is their sum. Every
// block has the line of the program that made the array.
func TestJAXBuffers(t *testing.T) {
	t.Parallel()
	for allocator, mem := range map[string]cuda.MemoryKind{"platform": cuda.MemoryDevice,
		"cuda_async": cuda.MemoryAsync} {
		t.Run(allocator, func(t *testing.T) {
			t.Parallel()
			r := runJAX(t, allocator)
			counters := r.counters(t)["0"]
			arrays, live := buffersOf(t, counters), liveAt(t, r.trace, "stats")[0]
			for address, size := range arrays {
				if got := live[address]; got.size != size || got.mem != mem {
					t.Errorf("array of %d bytes at %#x: the trace has %+v", size, address, got)
				}
			}
			var total uint64
			for _, size := range arrays {
				total += size
			}
			equal(t, "live blocks against live arrays", sum(live, mem), total)
			if allocator == "cuda_async" {
				equal(t, "live blocks against bytes_in_use", sum(live, mem), number(t, counters, "bytes_in_use"))
			}
			p := byLibraries(t, r.trace, "--at", "mark:stats")
			only(t, p, "JAX and XLA")
			equal(t, "JAX at the mark", under(p.Categories[0], "JAX and XLA"), total)
			sites := memtrace(t, "report", "--by", "site", "--at", "mark:stats", r.trace)
			for _, want := range []string{"jax_mlp.py:54 initial.<locals>.<listcomp>", "▸ main"} {
				if !strings.Contains(sites, want) {
					t.Errorf("no %q in\n%s", want, sites)
				}
			}
		})
	}
}

// By default JAX takes three quarters of the device at once and cuts its buffers from that: the driver returns one
// block, of as many bytes as JAX reports for its pool.
func TestJAXPreallocates(t *testing.T) {
	t.Parallel()
	r := runJAX(t, "default")
	counters, live := r.counters(t)["0"], liveAt(t, r.trace, "stats")[0]
	pool := number(t, counters, "pool_bytes")
	equal(t, "the driver's block", sum(live, cuda.MemoryDevice), pool)
	equal(t, "three quarters of 80 GiB", pool, 60<<30)
	only(t, byLibraries(t, r.trace), "JAX and XLA")
}

// An array that does not fit is refused by the driver, and JAX goes on: the trace has the request, what held the memory
// then, and the line of the request.
func TestJAXOutOfMemory(t *testing.T) {
	t.Parallel()
	r := runJAX(t, "platform", "--too-large", "99000000000")
	if !strings.Contains(r.stdout, "refused: RESOURCE_EXHAUSTED") {
		t.Fatalf("the program said\n%s", r.stdout)
	}
	rep := jsonReport(t, r.trace)
	if rep.OOM.Count == 0 {
		t.Fatal("no event")
	}
	for _, e := range rep.OOM.Events {
		equal(t, "requested", e.RequestedBytes, 99000000000)
		if !strings.Contains(e.Site, "jax_mlp.py") || e.Level != "driver" ||
			!strings.Contains(e.Library, "xla_cuda_plugin") {
			t.Errorf("event %+v", e)
		}
	}
}

// JAX itself reports what is in the block that it takes at its start: the trace has its memory profile, whose buffers
// are the live arrays, to the byte, each with the line that made it. Without the adapter there is none.
func TestJAXOwnAccount(t *testing.T) {
	t.Parallel()
	for adapters, want := range map[string]int{"jax": 1, "torch,mxnet": 0} {
		t.Run(adapters, func(t *testing.T) {
			t.Parallel()
			env := []string{"XLA_FLAGS=--xla_gpu_autotune_level=0", "TF_CPP_MIN_LOG_LEVEL=2", "MEMTRACE_ADAPTERS=" +
				adapters}
			r := program{framework: jax, env: env,
				args: []string{"jax_globals.py", "STATS"}}.record(t)
			if r.stdout+r.stderr != "" {
				t.Errorf("the program said %s%s", r.stdout, r.stderr)
			}
			accounts := jsonReport(t, r.trace).OwnAccounts
			if len(accounts) != want {
				t.Fatalf("%d accounts, want %d", len(accounts), want)
			}
			for _, a := range accounts {
				counters := r.counters(t)["0"]
				equal(t, "bytes of the live arrays", a.Bytes, number(t, counters, "bytes"))
				equal(t, "live arrays", a.Count, number(t, counters, "count"))
				sites := map[string]uint64{}
				for _, s := range a.Sites {
					sites[s.Site] = s.Bytes
				}
				equal(t, "the tables", sites["train/jax_globals.py:8 <listcomp>"], 60*1000*4)
				equal(t, "the product", sites["train/jax_globals.py:10 <module>"], 512*512*2)
			}
		})
	}
}
