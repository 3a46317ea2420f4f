package page

import (
	"testing"

	"memtrace/analyzer/report"
)

// TestLivesByPower: a block that lived a power of ten of nanoseconds exactly is not below it, as on the page; the
// logarithm of 1e15 is a little less than 15.
func TestLivesByPower(t *testing.T) {
	for power, ns := 3, int64(1000); power < 16; power, ns = power+1, ns*10 {
		for _, c := range []struct {
			lived int64
			below float64
		}{{ns - 1, float64(ns)}, {ns, float64(ns) * 10}} {
			h := &report.History{Times: []int64{0, c.lived}, Blocks: []report.HistoryBlock{{Born: 0, Died: 1, Size: 7}}}
			if got := newPast(h, c.lived).livesBetween(-1, 1); len(got) != 1 || got[0] != (lives{c.below, 1, 7}) {
				t.Errorf("lived %d ns: %+v, want below %g", c.lived, got, c.below)
			}
		}
	}
}
