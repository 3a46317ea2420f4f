package hostile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/spool"
)

const traceLimit = 4 << 20

// largest follows how much a trace and the copy that is to replace it have together, until stop is called.
func largest(path string) (stop func() int64) {
	done, result := make(chan struct{}), make(chan int64)
	go func() {
		var most int64
		for {
			var sum int64
			for _, name := range []string{path, path + ".thinning"} {
				if st, err := os.Stat(name); err == nil {
					sum += st.Size()
				}
			}
			most = max(most, sum)
			select {
			case <-done:
				result <- most
				return
			case <-time.After(pace / 5):
			}
		}
	}()
	return func() int64 {
		close(done)
		return <-result
	}
}

func limitedSummary(t *testing.T, path string) *report.Summary {
	t.Helper()
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	s, err := analyzer.Summarize(run, analyzer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A trace of many events keeps to its limit all the time, together with the copy that replaces it, and has the same
// peak and the same allocated bytes as one without a limit. Where other programs leave the drainer no processor, the
// limit gives way before records are lost, so up to twice the limit is allowed here; without one the trace has 8 MB.
func TestTraceKeepsItsLimit(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("records for half a minute; see TestKilledWithLimit")
	}
	const events = 3_000_000
	cmd, path := storm(t, []string{"MEMTRACE_TRACE_MAX=4M", "SPIN=4000", "MEMTRACE_SPOOL_MAX=1M"}, "1", "3000000", "24")
	stop := largest(path)
	err := cmd.Run()
	if most := stop(); err != nil || most > 2*traceLimit {
		t.Fatalf("at most %d bytes, the limit is %d; %v", most, traceLimit, err)
	}
	s := limitedSummary(t, path)
	switch {
	case s.Thinned == nil:
		t.Fatalf("%d events fit into the limit; the test needs more", events)
	case s.Driver.AllocCount != events/2 || s.Driver.FreeCount != events/2 || s.Driver.LiveBytes != 0:
		t.Errorf("%+v of %d events", s.Driver, events)
	case !s.Health.Complete || s.LostRecords > 0:
		t.Errorf("health %+v, %d lost", s.Health, s.LostRecords)
	}
	whole, wholePath := storm(t, nil, "1", "50000", "24")
	if err := whole.Run(); err != nil {
		t.Fatal(err)
	}
	if want := limitedSummary(t, wholePath).Driver.PeakBytes; s.Driver.PeakBytes != want {
		t.Errorf("peak %d, without a limit %d", s.Driver.PeakBytes, want)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("%v were left", left)
	}
}

// A program that is killed at any time, also while its trace is being thinned, leaves a trace without a gap.
func TestKilledWithLimit(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		cmd, path := storm(t, []string{"MEMTRACE_TRACE_MAX=4M"}, "2", "100000000", "24")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		thins := func() bool { return exists(path + ".thinning") }
		met := await(cmd.Process.Pid, thins) // while the copy is made
		if i%2 == 1 {                        // after a replacement
			met = met && await(cmd.Process.Pid, func() bool { return !thins() })
		}
		if !met {
			t.Fatal("the program ended")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		s := limitedSummary(t, path)
		if s.Health.Truncated || s.Health.SequenceGaps > 0 || s.LostRecords > 0 || s.Driver.AllocCount == 0 {
			t.Errorf("killed: %+v, %d lost, %+v", s.Health, s.LostRecords, s.Driver)
		}
	}
}

// A folder in which no copy can be created costs no records: the trace grows, and holds why.
func TestLimitThatCannotBeKept(t *testing.T) {
	t.Parallel()
	cmd, path := storm(t, []string{"MEMTRACE_TRACE_MAX=4M"}, "1", "3000000", "24")
	if err := os.WriteFile(path+".thinning", nil, 0o600); err != nil { // of another user
		t.Fatal(err)
	}
	cmd.Stderr = nil
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	s := limitedSummary(t, path)
	if s.Thinned != nil || s.Driver.AllocCount != 1_500_000 || !s.Health.Complete {
		t.Errorf("%+v %+v %+v\n%s", s.Thinned, s.Driver, s.Health, said)
	}
	if st, err := os.Stat(path + ".thinning"); err != nil || st.Size() != 0 {
		t.Errorf("somebody's file: %v %v", st, err)
	}
}
