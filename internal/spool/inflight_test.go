package spool_test

import (
	"os"
	"testing"

	"memtrace/internal/guest"
	"memtrace/internal/spool"
)

// Threads that were inside a free when the process ended or was killed left gaps among the order numbers, and the run
// was called incomplete. The ring of each records the call; a free whose thread ended inside it leaves nothing, and its
// number stays a gap. Merging the spool into a trace keeps all that.
func TestCallsInFlight(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	for _, c := range []struct {
		mode           string
		gaps, inFlight uint64
	}{{"hold", 0, 3}, {"hold-kill", 0, 3}, {"abandon", 3, 0}, {"kill", 0, 0}} {
		cmd, path := record(t, program, nil, "3", "10", c.mode)
		cmd.Run()
		for _, when := range []string{"beside its spool", "merged"} {
			events, run := readAll(t, path)
			h := run.Health()
			if h.Gaps != c.gaps || h.InFlight != c.inFlight || h.Truncated {
				t.Errorf("%s, %s: %d gaps, %d calls in flight, truncated %v; want %d and %d", c.mode, when, h.Gaps,
					h.InFlight, h.Truncated, c.gaps, c.inFlight)
			}
			if len(events) < 4+3*10 {
				t.Errorf("%s, %s: %d events", c.mode, when, len(events))
			}
			if err := spool.Finalize(path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A trace that a killed drainer left cut was called damaged where a call was in flight, although the spool made the cut
// good.
func TestCutWithCallsInFlight(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, nil, "3", "10", "hold-kill")
	cmd.Run()
	if err := os.WriteFile(path, []byte("MEMTRACE\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	events, run := readAll(t, path)
	if h := run.Health(); h.Truncated || h.InFlight != 3 || len(events) != 4+3*10+1 {
		t.Errorf("%d events, health %+v", len(events), h)
	}
}
