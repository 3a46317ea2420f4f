//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// A snapshot of PyTorch's, made a trace, has PyTorch's own figures at every step, and those of the trace that memtrace
// records of the same run.
func TestImportedSnapshots(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, c := range []struct{ framework, settings string }{{torch27, ""}, {torch215, ""},
		{torch27, "expandable_segments:True"}, {torch215, "expandable_segments:True"}} {
		t.Run(c.framework+" "+c.settings, func(t *testing.T) {
			t.Parallel()
			rarely(t, c.framework != torch27 && c.settings != "")
			folder := t.TempDir()
			r := program{framework: c.framework, args: []string{"snapshots.py", "."},
				env: []string{"PYTORCH_CUDA_ALLOC_CONF=" + c.settings}}.record(t)
			text, err := os.ReadFile(filepath.Join(r.dir, "counters.json"))
			if err != nil {
				t.Fatal(err)
			}
			var steps []struct{ Allocated, Reserved, Requested, Peak uint64 }
			if err := json.Unmarshal(text, &steps); err != nil || len(steps) != 4 {
				t.Fatalf("%d steps: %v", len(steps), err)
			}
			for i, want := range steps {
				imported := filepath.Join(folder, fmt.Sprintf("step%d.bin", i))
				memtrace(t, "import", filepath.Join(r.dir, fmt.Sprintf("step%d.pickle", i)), "-o", imported)
				got := jsonReport(t, imported)
				what := fmt.Sprintf("step %d: ", i)
				equal(t, what+"allocated", got.Framework.LiveBytes, want.Allocated)
				equal(t, what+"peak", got.Framework.PeakBytes, want.Peak)
				equal(t, what+"reserved", got.Driver.LiveBytes, want.Reserved)
				if got.Framework.RequestedLive == nil {
					t.Fatalf("%srequests %+v", what, got.Framework)
				}
				equal(t, what+"requested", got.Framework.RequestedLive.Bytes, want.Requested)
				own := jsonReport(t, r.trace, "--at", fmt.Sprintf("mark:step%d", i))
				equal(t, what+"allocated, as recorded", own.At.Devices[0].Framework.LiveBytes, want.Allocated)
				equal(t, what+"requested, as recorded", value(own.At.Devices[0].Framework.Requested).Bytes,
					want.Requested)
			}
		})
	}
}

// A history that begins during a run does not hold the sizes of blocks cut from what was cached before; the snapshot's
// segments and older blocks do.
func TestImportedLateHistories(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ framework, settings string }{{torch27, ""}, {torch215, ""},
		{torch27, "roundup_power2_divisions:4,max_split_size_mb:25"}, {torch215, "max_split_size_mb:25"}} {
		t.Run(c.framework+" "+c.settings, func(t *testing.T) {
			t.Parallel()
			if c.settings != "" {
				extended(t)
			}
			rarely(t, c.framework != torch27)
			r := program{framework: c.framework, args: []string{"late_history.py", "."},
				env: []string{"PYTORCH_CUDA_ALLOC_CONF=" + c.settings}}.record(t)
			text, err := os.ReadFile(filepath.Join(r.dir, "counters.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want struct{ Allocated, Peak, Reserved uint64 }
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			imported := filepath.Join(t.TempDir(), "late.bin")
			memtrace(t, "import", filepath.Join(r.dir, "late.pickle"), "-o", imported)
			got := jsonReport(t, imported)
			equal(t, "allocated", got.Framework.LiveBytes, want.Allocated)
			equal(t, "peak", got.Framework.PeakBytes, want.Peak)
			equal(t, "reserved", got.Driver.LiveBytes, want.Reserved)
		})
	}
}
