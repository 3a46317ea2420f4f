package spool_test

import (
	"os"
	"testing"
	"time"

	"memtrace/internal/guest"
	"memtrace/internal/section"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// A drainer keeps up with threads that come and go in a spool far too small for all their records at once: nothing is
// lost, nothing doubled, order holds.
func TestDrainWhileRecording(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, []string{"MEMTRACE_SPOOL_MAX=16M"}, "4", "2000", "churn")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		if st, err := os.Stat(path + spool.Extension); err == nil && st.Size() > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	s := openWritable(t, path)
	defer s.Close()
	cursor := spool.NewCursor(s)
	var seen section.SeqSet
	allocs, done := 0, false
	for last := uint64(0); ; {
		events, watermark, more := cursor.Collect(done)
		for _, e := range events {
			if !seen.Add(e.Seq) {
				t.Fatalf("event %d came twice", e.Seq)
			}
			if late := e.Flags&trace.FlagLate != 0; e.Seq < last != late {
				t.Fatalf("event %d after %d, late=%v", e.Seq, last, late)
			}
			last = max(last, e.Seq)
			if e.Seq >= watermark {
				t.Fatalf("event %d at or above the watermark %d", e.Seq, watermark)
			}
			if e.Kind == trace.EventAlloc {
				allocs++
			}
		}
		cursor.Release()
		if done && !more {
			break
		}
		select {
		case err := <-exited:
			if err != nil {
				t.Fatal(err)
			}
			done = true
		default:
		}
	}
	records, rings, _ := s.Lost()
	if want := 50*4*2000 + 2; allocs+int(records) != want || rings > 50*4 {
		t.Errorf("%d allocations and %d lost records of %d, %d threads without a ring", allocs, records, want, rings)
	}
	if records == 0 && seen.Gaps() != 0 {
		t.Errorf("%d numbers are missing", seen.Gaps())
	}
}

func openWritable(t *testing.T, path string) *spool.Spool {
	t.Helper()
	for {
		s, err := spool.Open(path+spool.Extension, true)
		if err == nil {
			return s
		}
		time.Sleep(time.Millisecond) // between sizing the file and writing its header
	}
}
