package hostile

import (
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/spool"
)

// A program that ended while other threads were inside calls left gaps among the order numbers and blocks without their
// free, and its whole trace was called incomplete.
func TestEndsAmidCalls(t *testing.T) {
	t.Parallel()
	inFlight := uint64(0)
	for round := range 12 {
		got := run{program: endings(t), args: []string{"_exit-atexit"}, preload: []string{""}}.do(t)
		source, err := spool.OpenRun(traceIn(t, got.dir))
		if err != nil {
			t.Fatal(err)
		}
		s, err := analyzer.Summarize(source, analyzer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !s.Health.Complete || s.Process.Ended != report.EndedClean {
			t.Errorf("round %d: ended %s, %d lost, %+v", round, s.Process.Ended, s.LostRecords, s.Health)
		}
		inFlight += s.Health.InFlightCalls
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d calls were in flight", inFlight)
}
