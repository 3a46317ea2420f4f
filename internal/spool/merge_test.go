package spool

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"memtrace/internal/section"
	"memtrace/trace"
)

// moved writes what a drainer had written of a small spool when it was killed: its events from 1 to 10 and 15, then one
// lost record, with the watermark 20; followed by cut bytes of a last section.
func moved(t testing.TB, path string, s *smallSpool, cut int) {
	t.Helper()
	if err := os.WriteFile(path+Extension, s.data, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Open(path+Extension, false)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	events, _, _ := NewCursor(all).Collect(true)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lost := []trace.Event{{Kind: trace.EventLost, Seq: 15, Count: 3}}
	if err := errors.Join(w.WriteEvents(events[:10]), w.WriteEvents(events[14:15]), w.WriteEvents(lost),
		w.Flush(20)); err != nil {
		t.Fatal(err)
	}
	whole := w.Offset()
	if err := errors.Join(w.WriteEvents(events[19:]), w.Flush(1000)); err != nil {
		t.Fatal(err)
	}
	if cut > 0 {
		whole += int64(cut)
	}
	if err := file.Truncate(whole); err != nil {
		t.Fatal(err)
	}
}

func readRest(t *testing.T, src trace.Source) []trace.Event {
	t.Helper()
	var events []trace.Event
	for {
		batch, err := src.ReadBatch()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, batch...)
	}
}

// A file that was cut, continued by its spool, has every event once, stragglers flagged late, and counts what was lost
// once; merging the two changes none of it.
func TestRunMerges(t *testing.T) {
	for _, cut := range []int{0, 5, 40} {
		path := filepath.Join(t.TempDir(), "t.bin")
		s := whole()
		s.put64(seedRingsAt+ringLostOthers, 5)
		moved(t, path, s, cut)
		var before []trace.Event
		for _, when := range []string{"beside its spool", "merged"} {
			run, err := OpenRun(path)
			if err != nil {
				t.Fatal(err)
			}
			if run.HasSpool() != (when == "beside its spool") {
				t.Errorf("%s: HasSpool %v", when, run.HasSpool())
			}
			events := readRest(t, run)
			checkMerged(t, events, s.seq)
			h := run.Health()
			if h.Gaps != 0 || h.MaxSeq != s.seq || h.Truncated || h.LateEvents != 8 {
				t.Errorf("cut %d, %s: health %+v", cut, when, h)
			}
			if h.Events != uint64(len(events)) {
				t.Errorf("cut %d, %s: %d events returned, %d counted", cut, when, len(events), h.Events)
			}
			if records, _, _ := run.Lost(); records != 5 {
				t.Errorf("cut %d, %s: %d records lost of 5", cut, when, records)
			}
			if got := run.Tables().String(1); got != "model.layer" {
				t.Errorf("cut %d, %s: tag %q", cut, when, got)
			}
			if run.Ended() != EndedKilled {
				t.Errorf("cut %d, %s: ended %q", cut, when, run.Ended())
			}
			events = slices.DeleteFunc(events, func(e trace.Event) bool { return e.Kind == trace.EventLost })
			if before != nil {
				sameEvents(t, events, before)
			}
			before = events
			if err := errors.Join(run.Close(), Finalize(path)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A slot that the drainer releases while it is read, before or after it is decoded, yields no event: neither an empty
// one nor one under another's number.
func TestSlotReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s"+Extension)
	if err := os.WriteFile(path, whole().data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	give := func(slot int) {
		at := seedSegmentsAt + slot*recordSize
		clear(s.data[at : at+recordSize])
	}
	cursor := NewCursor(s)
	cursor.visible(true)
	cursor.look()
	cursor.take(0, 9)
	give(2)
	cursor.decode()
	give(3)
	f := &Follower{spool: s}
	f.keep(cursor.keys, cursor.events)
	var numbers []uint64
	for _, e := range f.pending {
		numbers = append(numbers, e.Seq)
	}
	if want := []uint64{1, 4, 5, 6, 7, 8}; !slices.Equal(numbers, want) {
		t.Errorf("events %v, want %v", numbers, want)
	}
}

// checkMerged requires 1..last, each once, 11..14 and 16..19 after the file's other events, and late.
func checkMerged(t *testing.T, events []trace.Event, last uint64) {
	t.Helper()
	var seen section.SeqSet
	for _, e := range events {
		if e.Kind == trace.EventLost {
			continue
		}
		if !seen.Add(e.Seq) {
			t.Errorf("event %d came twice", e.Seq)
		}
		straggler := e.Seq > 10 && e.Seq < 20 && e.Seq != 15
		if late := e.Flags&trace.FlagLate != 0; late != straggler {
			t.Errorf("event %d: late %v", e.Seq, late)
		}
	}
	if seen.Len() != last || seen.Gaps() != 0 {
		t.Errorf("%d events of %d, %d missing", seen.Len(), last, seen.Gaps())
	}
}

// sameEvents compares what the file keeps of every kind of event.
func sameEvents(t *testing.T, got, want []trace.Event) {
	t.Helper()
	type part struct {
		seq, addr, size uint64
		time            int64
		kind            trace.EventKind
		flags           trace.Flags
		thread          trace.ThreadID
	}
	parts := func(events []trace.Event) []part {
		list := make([]part, len(events))
		for i, e := range events {
			list[i] = part{e.Seq, e.Addr, e.Size, e.Time, e.Kind, e.Flags, e.Thread}
		}
		return list
	}
	if a, b := parts(got), parts(want); !slices.Equal(a, b) {
		t.Errorf("events are\n%v, want\n%v", a, b)
	}
}
