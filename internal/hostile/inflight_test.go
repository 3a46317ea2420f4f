package hostile

import "testing"

// A program that ended while other threads were inside calls left gaps among the order numbers, and its whole trace was called incomplete.
func TestEndsAmidCalls(t *testing.T) {
	inFlight := uint64(0)
	for round := range 12 {
		got := run{program: manners(t), args: []string{"_exit-busy"}, preload: []string{""}}.do(t)
		for _, path := range got.traces(t) {
			r := read(t, path)
			if r.health.Gaps != 0 || r.lost != 0 {
				t.Errorf("round %d: %d gaps, %d lost, %d calls in flight", round, r.health.Gaps, r.lost, r.health.InFlight)
			}
			inFlight += r.health.InFlight
		}
	}
	t.Logf("%d calls were in flight", inFlight)
}
