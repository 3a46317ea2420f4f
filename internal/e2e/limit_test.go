//go:build e2e

package e2e

import (
	"os"
	"testing"
)

// A trace that is kept small by a limit has PyTorch's own figures of its memory: the peak, what held it, what is left,
// and what was allocated in all. Its last part is complete, so nothing grows and iterations are reported.
func TestTraceLimit(t *testing.T) {
	t.Parallel()
	extended(t)
	const limit = 4 << 20
	p := program{framework: torch27, args: []string{"gpt2.py", "--layers", "4", "--steps", "1200", "--memory-stats",
		"STATS"}, env: []string{"MEMTRACE_TRACE_MAX=4M"}}
	r := p.record(t)
	if st, err := os.Stat(r.trace); err != nil || st.Size() > limit {
		t.Errorf("the trace: %v %v", st, err)
	}
	rep := jsonReport(t, r.trace, "--by", "category,tag,module,site")
	counters := r.counters(t)["0"]
	peak := number(t, counters, "allocated_bytes.all.peak")
	if rep.Framework.PeakBytes != peak || rep.Framework.AllocCount != number(t, counters, "allocation.all.allocated") {
		t.Errorf("%+v, PyTorch says peak %d of %v allocations", rep.Framework, peak,
			counters["allocation.all.allocated"])
	}
	for _, g := range rep.Groups {
		var sum uint64
		for _, row := range g.Rows {
			sum += row.PeakBytes
		}
		if g.Level == "framework" && sum != peak {
			t.Errorf("by %s: %d bytes at the peak, not %d", g.By, sum, peak)
		}
	}
	if rep.Thinned == nil || rep.Thinned.LeftOutEvents == 0 || !rep.Health.Complete {
		t.Errorf("thinned %+v, health %+v", rep.Thinned, rep.Health)
	}
}
