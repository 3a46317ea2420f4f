package spool

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/internal/section"
	"memtrace/trace"
)

// recordedBy is a small spool of another process, or of another time.
func recordedBy(pid uint32, since uint64) *smallSpool {
	s := whole()
	s.put32(offPID, pid)
	s.put64(offProcessStart, since)
	s.put64(offClockFirst, since*1000)
	s.put64(offClockFirst+16, since*77)
	return s
}

// drained writes the trace that a drainer had written of a spool: its first events, or all and the end, and its spool
// beside it.
func drained(t *testing.T, s *smallSpool, events int, end bool) (path string) {
	t.Helper()
	path = writeSpool(t, s)
	from, err := Open(path+Extension, false)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	all, _, _ := NewCursor(from).Collect(true)
	err = errors.Join(w.WriteInfo(from.Info()), w.WriteEvents(all[:events]), w.Flush(uint64(events)+1))
	if end {
		err = errors.Join(err, w.WriteInfo(from.Drawn().Info()), w.Close(trace.End{Reason: "exit"}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// opened reads a run to its end.
func opened(t *testing.T, path string) (*Run, []trace.Event) {
	t.Helper()
	run, err := OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	return run, readRest(t, run)
}

// A killed process's trace, moved away from its spool, was "complete, nothing lost", with a tenth to two fifths of its
// allocations missing.
func TestKilledWithoutItsSpool(t *testing.T) {
	for why, change := range map[string]func(path string) error{
		"":                         func(string) error { return nil },
		"t.bin.spool is not there": func(path string) error { return os.Remove(path + Extension) },
		"t.bin.spool leads to /gone/t.bin.spool, which is not there": func(path string) error {
			return errors.Join(os.Remove(path+Extension), os.Symlink("/gone/t.bin.spool", path+Extension))
		},
		"t.bin.spool: not a memtrace spool (0 bytes)": func(path string) error {
			return os.Truncate(path+Extension, 0)
		},
		"t.bin.spool: not a memtrace spool": func(path string) error {
			return os.WriteFile(path+Extension, make([]byte, 8*pageSize), 0o600)
		},
		"t.bin.spool: the spool of another recording (process 4711)": func(path string) error {
			return os.WriteFile(path+Extension, recordedBy(4711, 9).data, 0o600)
		},
		"t.bin.spool: not a regular file but a directory": func(path string) error {
			return errors.Join(os.Remove(path+Extension), os.Mkdir(path+Extension, 0o700))
		},
	} {
		s := recordedBy(1<<22, 8)
		path := drained(t, s, 100, false)
		if err := change(path); err != nil {
			t.Fatal(err)
		}
		run, events := opened(t, path)
		want, ended := 100, EndedUnknown
		if why == "" {
			want, ended = int(s.seq), EndedKilled
		}
		if h := run.Health(); h.NoEnd != why || len(events) != want || h.Gaps != 0 || run.Ended() != ended {
			t.Errorf("%q: %d events of %d, ended %s, %+v", why, len(events), want, run.Ended(), h)
		}
	}
}

// A file that was cut between two of its sections looked like that of a killed process, which had lost nothing, and
// one that was cut anywhere was said to be killed, or to have ended with its exit status. The other process is killed
// while it exits, and the file that has all its spool held says so.
func TestCutTrace(t *testing.T) {
	s := recordedBy(1<<22, 8)
	s.put32(offExitStatus, exited)
	clean, merged := drained(t, s, int(s.seq), true), drained(t, s, 100, false)
	if err := Finalize(merged); err != nil {
		t.Fatal(err)
	}
	for path, ended := range map[string]string{clean: EndedClean, merged: EndedKilled} {
		os.Remove(path + Extension)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		cuts := 0
		for at := section.HeadSize; at < len(whole); cuts++ {
			for _, cut := range []int{at, at + 5} {
				if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
				run, events := opened(t, path)
				h := run.Health()
				if h.NoEnd == "" && !h.Truncated && h.Gaps == 0 && uint64(len(events)) < s.seq ||
					run.Ended() != EndedUnknown {
					t.Errorf("cut at %d of %d: %d events of %d, ended %s, and nothing is missing: %+v", cut, len(whole),
						len(events), s.seq, run.Ended(), h)
				}
			}
			at += section.HeaderSize + int(section.ParseHeader(whole[at:]).Length)
		}
		if cuts < 4 {
			t.Errorf("%s has %d sections", path, cuts)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		run, events := opened(t, path)
		if run.Health().NoEnd != "" || uint64(len(events)) != s.seq || run.Ended() != ended {
			t.Errorf("%d events of %d, ended %s, %+v", len(events), s.seq, run.Ended(), run.Health())
		}
	}
}

// A trace that had its end took 14,000 events of another process from the file at its spool's name; an empty file there
// made it unreadable.
func TestEndedTraceReadsNoSpool(t *testing.T) {
	for what, beside := range map[string][]byte{"another's": recordedBy(4711, 9).data, "nothing": {},
		"a text": []byte("x\n"), "zeros": make([]byte, 1<<20), "its own": recordedBy(1<<22, 8).data} {
		s := recordedBy(1<<22, 8)
		path := drained(t, s, int(s.seq), true)
		if err := os.WriteFile(path+Extension, beside, 0o600); err != nil {
			t.Fatal(err)
		}
		run, events := opened(t, path)
		h := run.Health()
		if uint64(len(events)) != s.seq || h.NoEnd != "" || run.HasSpool() || run.NotSpool() != nil || h.Gaps != 0 ||
			run.Ended() != EndedClean {
			t.Errorf("%s: %d events of %d, ended %s, %v, %+v", what, len(events), s.seq, run.Ended(), run.NotSpool(), h)
		}
		if err := Finalize(path); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Stat(path + Extension); (err == nil) == (what == "its own") {
			t.Errorf("%s: removed %v", what, err)
		}
	}
}

// Another recording's spool is neither merged nor removed.
func TestForeignSpoolStays(t *testing.T) {
	path := drained(t, recordedBy(1<<22, 8), 100, false)
	if err := os.WriteFile(path+Extension, recordedBy(1<<22, 9).data, 0o600); err != nil { // the number came again
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if err := Finalize(path); !errors.Is(err, ErrForeign) {
		t.Errorf("it says %v", err)
	}
	after, _ := os.ReadFile(path)
	if _, err := os.Stat(path + Extension); err != nil || string(before) != string(after) {
		t.Errorf("the spool is gone, or the trace is another one: %v", err)
	}
}

// One of the words that identify a recording may be damaged. Traces of recorders that wrote none have the time at which
// they began.
func TestSpoolIsMatchedToTrace(t *testing.T) {
	for _, off := range []int{offPID, offProcessStart, offBootHash, offPIDNamespace, offClockFirst,
		offClockFirst + 16} {
		s := recordedBy(1<<22, 8)
		path := drained(t, s, 100, false)
		s.data[off] ^= 0x10
		if err := os.WriteFile(path+Extension, s.data, 0o600); err != nil {
			t.Fatal(err)
		}
		if run, events := opened(t, path); !run.HasSpool() || uint64(len(events)) != s.seq {
			t.Errorf("byte %d: %d events of %d", off, len(events), s.seq)
		}
	}
	s := &Spool{data: recordedBy(1, 8).data}
	for base, own := range map[string]bool{"616": true, "617": false, "": true} {
		if s.continues(trace.Info{"clock.base_unix_ns": base}) != own {
			t.Errorf("%q: not %v", base, own)
		}
	}
}

// A chain that led to another ring's records had them once more for each ring, 2.7 GB for a changed byte.
func TestSharedChainsUseNoMemory(t *testing.T) {
	s := whole()
	s.put32(seedRingsAt+ringSize+ringFirstSegment, 1)
	look, err := Follow("", writeSpool(t, s)+Extension)
	if err != nil {
		t.Fatal(err)
	}
	defer look.Close()
	if err := look.Refresh(); err != nil {
		t.Fatal(err)
	}
	if most := int(s.seq); len(look.pending) > most {
		t.Errorf("%d records are held of %d", len(look.pending), most)
	}
}

// Copies of a killed process's trace had gaps where the original had calls in flight.
func TestCopyKeepsCallsInFlight(t *testing.T) {
	s := recordedBy(1<<22, 8)
	path := drained(t, s, 100, false)
	s.put64(seedRingsAt+ringInflight, s.seq+1)
	s.put64(offSeq, s.seq+2)
	s.put64(offLostThreads, 3)
	if err := os.WriteFile(path+Extension, s.data, 0o600); err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	copied := filepath.Join(t.TempDir(), "copy.bin")
	file, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Copy(w, run, trace.Unedited{}); err != nil {
		t.Fatal(err)
	}
	again, events := opened(t, copied)
	want, have := run.Health(), again.Health()
	_, rings, _ := again.Lost()
	if want.InFlight != 2 || have.InFlight != 2 || have.Gaps != 0 || have.NoEnd != "" || rings != 3 ||
		uint64(len(events)) != s.seq || strings.TrimSpace(again.Info()["process.in_flight"]) == "" {
		t.Errorf("%d events, %d threads lost, %+v of %+v", len(events), rings, have, want)
	}
}
