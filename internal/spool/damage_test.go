package spool

import (
	"os"
	"path/filepath"
	"testing"

	"memtrace/trace"
)

// writeSpool writes a small spool beside a trace that is not there, and returns the trace's path.
func writeSpool(t *testing.T, s *smallSpool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "t.bin")
	if err := os.WriteFile(path+Extension, s.data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A header with fewer drawn numbers than there are hid all records above them, and nothing reported it: no number up to
// the highest one read was missing. A number too high for the size of the file is still rejected.
func TestHeaderThatHidesRecords(t *testing.T) {
	for _, drawn := range []uint64{0, 18, 1<<64 - 1} {
		s := whole()
		last := s.seq
		s.put64(seedSegmentsAt+2*recordSize+recSeq, 1<<40) // number 2
		s.put64(offSeq, drawn)
		run, err := OpenRun(writeSpool(t, s) + Extension)
		if err != nil {
			t.Fatal(err)
		}
		events := readRest(t, run)
		if drawn < last && uint64(len(events)) != last-1 || run.Health().Gaps == 0 {
			t.Errorf("%d numbers drawn: %d events of %d, %+v", drawn, len(events), last-1, run.Health())
		}
		if err := run.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The highest records of a killed process were gone without a trace of them: gaps were counted up to the highest number
// that was read.
func TestMissingAtTheEnd(t *testing.T) {
	s := whole()
	s.put64(seedRingsAt+ringSize+ringFirstSegment, 0) // both records of the second ring
	path := writeSpool(t, s)
	s.put64(offSeq, s.seq+3)
	if err := os.WriteFile(path+Extension, s.data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"beside its spool", "merged"} {
		run, err := OpenRun(pathOf(path))
		if err != nil {
			t.Fatal(err)
		}
		if events := readRest(t, run); uint64(len(events)) != s.seq-2 || run.Health().Gaps != 2+3 {
			t.Errorf("%s: %d events, %d gaps", when, len(events), run.Health().Gaps)
		}
		run.Close()
		if err := Finalize(path); err != nil {
			t.Fatal(err)
		}
	}
}

// One record of no kind, such as a page that never came to the disk leaves, kept a killed process's spool from being
// merged for ever.
func TestMergeWithRecordOfNoKind(t *testing.T) {
	for _, kind := range []byte{0, 99} {
		s := whole()
		s.data[seedSegmentsAt+5*recordSize+recKind] = kind
		path := writeSpool(t, s)
		for _, when := range []string{"beside its spool", "merged"} {
			run, err := OpenRun(pathOf(path))
			if err != nil {
				t.Fatal(err)
			}
			events, h := readRest(t, run), run.Health()
			if uint64(len(events)) != s.seq-1 || h.Gaps != 1 || run.HasSpool() && h.UnknownEvents != 1 {
				t.Errorf("kind %d, %s: %d events of %d, %+v", kind, when, len(events), s.seq-1, h)
			}
			run.Close()
			if err := Finalize(path); err != nil {
				t.Fatalf("kind %d: %v", kind, err)
			}
		}
	}
}

// A record that had received another one's number took that one's place, and nothing reported it where its own was in
// the trace already, so that no number was missing.
func TestTwoRecordsOfOneNumber(t *testing.T) {
	s := whole()
	path := filepath.Join(t.TempDir(), "t.bin")
	moved(t, path, s, 0)
	s.put64(seedSegmentsAt+5*recordSize+recSeq, 30)
	if err := os.WriteFile(path+Extension, s.data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"beside its spool", "merged"} {
		run, err := OpenRun(path)
		if err != nil {
			t.Fatal(err)
		}
		readRest(t, run)
		if h := run.Health(); h.Gaps != 0 || run.HasSpool() && h.Repeated != 1 || !run.HasSpool() && h.Altered == "" {
			t.Errorf("%s: %+v", when, h)
		}
		run.Close()
		if err := Finalize(path); err != nil {
			t.Fatal(err)
		}
	}
}

// The trace held lost records and the spool beside it, damaged, none: then none were reported.
func TestLostInTraceOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.bin")
	moved(t, path, whole(), 0)
	run, err := OpenRun(path)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var lost uint64
	for _, e := range readRest(t, run) {
		if e.Kind == trace.EventLost {
			lost += e.Count
		}
	}
	if records, _, _ := run.Lost(); records != lost || lost == 0 {
		t.Errorf("%d records lost, the trace says %d", records, lost)
	}
}
