//go:build e2e

package e2e

import (
	"errors"
	"io"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/account"
	"memtrace/internal/spool"
)

// driverLog reads the null driver's own log, without what no hooked call requests: pools' reserves, contexts, globals,
// refused requests.
func driverLog(t *testing.T, path string) account.Account {
	t.Helper()
	log, err := account.Log(path)
	if err != nil {
		t.Fatal(err)
	}
	return log.Of("device", "managed", "host", "async", "vmm", "array", "sparse", "multicast")
}

// traceAccount returns the same of a trace's driver level.
func traceAccount(t *testing.T, path string) account.Account {
	t.Helper()
	run, err := spool.OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	a := account.NewReplay()
	for {
		events, err := run.ReadBatch()
		if errors.Is(err, io.EOF) {
			return a.Of("device", "managed", "host", "async", "vmm", "array", "sparse", "multicast")
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			if events[i].Level == cuda.LevelDriver {
				a.Apply(&events[i])
			}
		}
	}
}

// compareAccounts demands that trace and driver agree about every change, in order: then their totals agree at every
// moment.
func compareAccounts(t *testing.T, r *result) {
	t.Helper()
	want := driverLog(t, r.log)
	if words := want.Differs(traceAccount(t, r.trace)); words != "" {
		t.Error(words)
	}
	if len(want) == 0 {
		t.Error("the driver's log is empty: nothing was compared")
	}
}
