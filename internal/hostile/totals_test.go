package hostile

import (
	"cmp"
	"path/filepath"
	"slices"
	"testing"

	"memtrace/trace"
)

// TestTotals compares live memory at the end in the trace with the null driver's, kind by kind.
func TestTotals(t *testing.T) {
	t.Parallel()
	program := compile(t, "totals", []string{"testdata/guest/totals.c"}, withDriver(t)...)
	got := run{program: program, preload: []string{""}, env: []string{"NULLCUDA_LOG=null.log"}}.do(t)
	if got.exit != 0 || got.stdout != "end\n" {
		t.Fatalf("exit %d\n%s%s", got.exit, got.stdout, got.stderr)
	}
	compareTotalsOf(t, got, "null.log")
}

// compareTotalsOf compares live memory at the end in the only trace of a run with the null driver's log. The order is
// that of the events' numbers: a thread that was held up inside a call, as valgrind holds up all but one, has its event
// later in the file.
func compareTotalsOf(t *testing.T, got result, log string) {
	t.Helper()
	driver, have := driverAccount(t, filepath.Join(got.dir, log)), replay(slices.SortedStableFunc(
		slices.Values(got.only(t).events), func(a, b trace.Event) int { return cmp.Compare(a.Seq, b.Seq) }))
	checkHealth(t, got.traces(t)[0])
	for _, kind := range []string{"device", "managed", "host", "async", "vmm"} {
		if want := driver.Live(kind); want.Count == 0 || want != have.Live(kind) {
			t.Errorf("%s: the driver has %+v, the trace %+v", kind, want, have.Live(kind))
		}
	}
}
