package spool_test

import (
	"bytes"
	"testing"

	"memtrace/internal/spool"
	"memtrace/trace"
)

// restart returns a follower that goes on where another one rests, by way of a bookmark's file; the other one if it
// cannot be kept.
func restart(t *testing.T, f *spool.Follower, path string) (next *spool.Follower, kept bool) {
	t.Helper()
	var state trace.Keyframe
	if !f.KeepReading(&state.State) {
		return f, false
	}
	f.Close()
	var file bytes.Buffer
	if err := trace.WriteBookmark(&file, "test", &state); err != nil {
		t.Fatal(err)
	}
	back, err := trace.ReadBookmark(bytes.NewReader(file.Bytes()), int64(file.Len()), "test")
	if err != nil {
		t.Fatal(err)
	}
	if f, err = spool.Follow(path, path+spool.Extension); err != nil {
		t.Fatal(err)
	}
	if !f.GoOnReading(&back.State) {
		t.Fatal("a follower cannot go on")
	}
	return f, true
}

// Followers that each go on from the bookmark of the one before, while threads record and a drainer moves records,
// return every event once among them, and the last one's books are those of all.
func TestFollowersGoOn(t *testing.T) {
	const threads, each = 4, 100000
	path, recorded, turns, done := recordAndDrain(t, threads, each)
	f, err := spool.Follow(path, path+spool.Extension)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { f.Close() }()
	seen, restarts := map[uint64]int{}, 0
	look := func() {
		for _, e := range readOn(t, f) {
			if e.Kind != trace.EventLost {
				seen[e.Seq]++
			}
		}
	}
	for running := true; running; {
		select {
		case <-recorded:
			turns <- true
			running = false
		case turns <- true: // the drainer works while the follower reads
		}
		look()
		next, kept := restart(t, f, path)
		if f = next; !kept {
			continue
		}
		restarts++
		if look(); !f.CameBack() {
			t.Fatal("a follower is not where the one before was")
		}
	}
	close(turns)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	look()
	for seq, n := range seen {
		if n != 1 {
			t.Fatalf("event %d was returned %d times", seq, n)
		}
	}
	lost, _, _ := f.Lost()
	if want := uint64(threads*each + 4); uint64(len(seen))+lost != want || f.Health().Events < uint64(len(seen)) {
		t.Errorf("%d events and %d lost of %d; the books have %d", len(seen), lost, want, f.Health().Events)
	}
	if t.Logf("%d restarts", restarts); restarts == 0 && lost == 0 {
		t.Error("no follower could be kept")
	}
}

// TestGoOnInAnotherTrace: a follower notices where the trace is not the one of its bookmark.
func TestGoOnInAnotherTrace(t *testing.T) {
	write := func(f *bytes.Buffer, size uint64) {
		w, err := trace.NewWriter(f, trace.WriterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for seq := range uint64(4) {
			events := []trace.Event{{Kind: trace.EventAlloc, Seq: 1 + seq, Addr: 512, Size: size}}
			if err := w.WriteEvents(events); err != nil {
				t.Fatal(err)
			}
			if err := w.Flush(1 + seq); err != nil {
				t.Fatal(err)
			}
		}
	}
	var one, other bytes.Buffer
	write(&one, 512)
	write(&other, 513)
	for _, c := range []struct {
		file []byte
		same bool
	}{{one.Bytes(), true}, {other.Bytes(), false}, {one.Bytes()[:one.Len()-8], false}} {
		var state trace.State
		r := readerOf(t, one.Bytes())
		if !r.KeepReading(&state) {
			t.Fatal("the reader cannot be kept")
		}
		again, err := trace.NewReader(bytes.NewReader(c.file), int64(len(c.file)))
		if err != nil {
			t.Fatal(err)
		}
		if !again.GoOnReading(&state) {
			t.Fatal("the state is refused")
		}
		_, _ = again.ReadBatch()
		if again.CameBack() != c.same {
			t.Errorf("%d bytes, the same %v: came back %v", len(c.file), c.same, !c.same)
		}
	}
}

// readerOf reads a trace to its end.
func readerOf(t *testing.T, file []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	for err == nil {
		_, err = r.ReadBatch()
	}
	if r == nil {
		t.Fatal(err)
	}
	return r
}
