package hostile

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestTotals compares what the trace says is live at the end with what the null driver says, kind by kind.
func TestTotals(t *testing.T) {
	t.Parallel()
	program := compile(t, "totals", []string{"testdata/guest/totals.c"}, withDriver(t)...)
	got := run{program: program, preload: []string{""}, env: []string{"NULLCUDA_LOG=null.log"}}.do(t)
	if got.exit != 0 || got.stdout != "end\n" {
		t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
	compareTotalsOf(t, got, "null.log")
}

// compareTotalsOf compares what the only trace of a run says is live at the end with the null driver's log.
func compareTotalsOf(t *testing.T, got result, log string) {
	t.Helper()
	driver := driverAccount(t, filepath.Join(got.dir, log))
	have := traceTotals(t, got.only(t))
	for _, kind := range []string{"device", "managed", "host", "async", "vmm"} {
		if want := driver.live(kind); want.count == 0 || want != have[kind] {
			t.Errorf("%s: the driver has %+v, the trace %+v", kind, want, have[kind])
		}
	}
}

// total is what is live of one kind.
type total struct {
	count int
	bytes uint64
}

// traceTotals replays a trace in the simplest way, in the order of the events' numbers: a thread that was held up
// inside a call, as valgrind holds up all but one, has its event later in the file. Every free must name something
// live.
func traceTotals(t *testing.T, r recorded) map[string]total {
	t.Helper()
	type block struct {
		addr uint64
		vmm  bool
	}
	live := map[block]trace.Event{}
	events := slices.SortedStableFunc(slices.Values(r.events), func(a, b trace.Event) int {
		return cmp.Compare(a.Seq, b.Seq)
	})
	for _, e := range events {
		key := block{e.Addr, e.Mem == cuda.MemoryVMM}
		switch e.Kind {
		case trace.EventAlloc:
			if _, taken := live[key]; taken {
				t.Errorf("event %d allocates %#x, which is live", e.Seq, e.Addr)
			}
			live[key] = e
		case trace.EventFree:
			if _, ok := live[key]; !ok {
				t.Errorf("event %d frees %#x, which is not live", e.Seq, e.Addr)
			}
			delete(live, key)
		}
	}
	totals := map[string]total{}
	for _, e := range live {
		kind := strings.ToLower(e.Mem.String())
		totals[kind] = total{totals[kind].count + 1, totals[kind].bytes + e.Size}
	}
	return totals
}
