package analyzer

import (
	"testing"

	"memtrace/trace"
)

// TestStacksAddUp: the rows of a stack set are the level, whatever was retired meanwhile.
func TestStacksAddUp(t *testing.T) {
	for seed := range uint64(60) {
		src := &memorySource{events: randomStream(seed, streamShape{events: 500, wild: true, delayed: func(trace.Event) bool { return true }})}
		fillTables(&src.tables)
		live, err := NewLive(src, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range live.collector.details {
			if d != nil {
				d.cells.keep = int(1 + 20*(seed%2))
			}
		}
		s, err := live.Update()
		if err != nil {
			t.Fatal(err)
		}
		for name, level := range map[string]Level{"framework": s.Framework, "driver": s.Driver} {
			var sum Level
			seen := make(map[uint64]bool)
			for _, r := range live.collector.stackSet(s, name, &Options{}).Rows {
				sum.PeakBytes += r.PeakBytes
				sum.LiveBytes += r.LiveBytes
				sum.AllocBytes += r.AllocBytes
				sum.AllocCount += r.AllocCount
				sum.FreeCount += r.FreeCount
				if seen[r.Key] {
					t.Errorf("seed %d: two %s rows of stack %#x", seed, name, r.Key)
				}
				seen[r.Key] = true
			}
			level.PeakTimeNS, level.FailedCount = 0, 0
			if sum != level {
				t.Errorf("seed %d: %s stacks add up to %+v, want %+v", seed, name, sum, level)
			}
		}
	}
}
