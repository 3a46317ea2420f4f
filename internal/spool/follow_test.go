package spool_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"memtrace/internal/guest"
	"memtrace/internal/section"
	"memtrace/internal/spool"
	"memtrace/trace"
)

// drain plays the drainer of the process that records at path: a round for every receive from turns, and closes the
// trace when turns is closed.
func drain(t *testing.T, path string, turns <-chan bool, done chan<- error) {
	t.Helper()
	s, err := spool.Open(path+spool.Extension, true)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer s.Close()
		defer file.Close()
		cursor := spool.NewCursor(s)
		round := func() error {
			for more := true; more; {
				var events []trace.Event
				var mark uint64
				events, mark, more = cursor.Collect(true)
				more = more && len(events) > 0
				if err := errors.Join(cursor.Dictionary(w), w.WriteEvents(events), w.Flush(mark)); err != nil {
					return err
				}
				cursor.Release()
			}
			return nil
		}
		for range turns {
			if err := round(); err != nil {
				done <- err
				return
			}
		}
		done <- errors.Join(round(), w.Close(trace.End{Reason: "exit"}))
	}()
}

// readOn returns what a follower has not returned before.
func readOn(t *testing.T, f *spool.Follower) []trace.Event {
	t.Helper()
	if err := f.Refresh(); err != nil {
		t.Fatal(err)
	}
	var events []trace.Event
	for {
		batch, err := f.ReadBatch()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, batch...)
	}
}

// started runs a recorder that stays alive when it has recorded everything; the returned function lets it end.
func started(t *testing.T, cmd *exec.Cmd) (recorded <-chan struct{}, end func()) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		out.Read(make([]byte, 16))
	}()
	return ready, func() {
		in.Close()
		cmd.Wait()
	}
}

// waitForSpool returns when the recorder has made its spool.
func waitForSpool(t *testing.T, path string) {
	t.Helper()
	for {
		if s, err := spool.Open(path+spool.Extension, false); err == nil {
			s.Close()
			return
		}
	}
}

// recordAndDrain starts threads that record so many events each, and a drainer beside them that works one turn for each
// value sent to turns. The program ends with the test.
func recordAndDrain(t *testing.T, threads, each int) (path string, recorded <-chan struct{}, turns chan<- bool,
	done <-chan error) {
	t.Helper()
	cmd, path := record(t, guest.Recorder(t, recorderSource), nil, strconv.Itoa(threads), strconv.Itoa(each), "linger")
	recorded, end := started(t, cmd)
	t.Cleanup(end)
	waitForSpool(t, path)
	sent, ended := make(chan bool), make(chan error, 1)
	drain(t, path, sent, ended)
	return path, recorded, sent, ended
}

// A follower that reads while threads record and a drainer moves records and releases segments returns every event
// once, from either place, with its stacks and tags.
func TestFollow(t *testing.T) {
	const threads, each = 4, 400000
	path, recorded, turns, done := recordAndDrain(t, threads, each)
	f, err := spool.Follow(path, path+spool.Extension)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var events []trace.Event
	looks := 0
	for running := true; running; looks++ {
		select {
		case turns <- true: // at once if the drainer is idle: it then works while the follower reads
		default:
		}
		events = append(events, readOn(t, f)...)
		select {
		case <-recorded:
			running = false
		default:
		}
	}
	close(turns)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	events = append(events, readOn(t, f)...)
	t.Logf("%d looks while the recorder worked", looks)
	seen := map[uint64]int{}
	announced := uint64(0)
	events = slices.DeleteFunc(events, func(e trace.Event) bool {
		if e.Kind != trace.EventLost {
			seen[e.Seq]++
			return false
		}
		announced += e.Count // with the number of another event
		return true
	})
	for seq, n := range seen {
		if n != 1 {
			t.Fatalf("event %d was returned %d times", seq, n)
		}
	}
	lost, _, _ := f.Lost()
	if want := threads*each + 4; uint64(len(events))+lost != uint64(want) {
		t.Errorf("%d events and %d lost of %d", len(events), lost, want)
	}
	if announced != lost {
		t.Errorf("told of %d lost records of %d", announced, lost)
	}
	checkTags(t, bySequence(events), runOf(t, path))
	if got := f.Tables().String(bySequence(events)[0].Tag); got != "outer.inner" {
		t.Errorf("the first event's tag is %q", got)
	}
	if f.Ended() != spool.EndedClean {
		t.Errorf("ended %q", f.Ended())
	}
	if more := readOn(t, f); len(more) != 0 {
		t.Errorf("%d events after the end", len(more))
	}
}

// bySequence puts events at the places that their numbers give.
func bySequence(events []trace.Event) []trace.Event {
	sorted := make([]trace.Event, len(events))
	for _, e := range events {
		if e.Seq > 0 && e.Seq <= uint64(len(events)) {
			sorted[e.Seq-1] = e
		}
	}
	return sorted
}

func runOf(t *testing.T, path string) *spool.Run {
	_, run := readAll(t, path)
	return run
}

// Without a drainer everything stays in the spool, and the trace is an empty file.
func TestFollowUndrained(t *testing.T) {
	program := guest.Recorder(t, recorderSource)
	cmd, path := record(t, program, nil, "2", "1000", "linger")
	recorded, end := started(t, cmd)
	defer end()
	<-recorded
	for _, trace := range []string{path, ""} {
		f, err := spool.Follow(trace, path+spool.Extension)
		if err != nil {
			t.Fatal(err)
		}
		if events := readOn(t, f); len(events) != 2004 || f.Health().Gaps != 0 || f.Info()["process.command"] == "" {
			t.Errorf("trace %q: %d events of 2004", trace, len(events))
		}
		if events := readOn(t, f); len(events) != 0 {
			t.Errorf("trace %q: %d events a second time", trace, len(events))
		}
		f.Close()
	}
}

// A trace that is damaged in the middle is distinguished from one whose last section is being written.
func TestFollowDamage(t *testing.T) {
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	alloc := func(seq uint64) []trace.Event {
		return []trace.Event{{Kind: trace.EventAlloc, Seq: seq, Addr: seq, Size: 512, Level: 1, API: 1, Mem: 1,
			Thread: 1}}
	}
	if err := errors.Join(w.WriteEvents(alloc(1)), w.Flush(2)); err != nil {
		t.Fatal(err)
	}
	half := file.Len()
	if err := errors.Join(w.WriteEvents(alloc(2)), w.Flush(3)); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/t.bin"
	write := func(b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file.Bytes()[:half+20])
	f, err := spool.Follow(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if events := readOn(t, f); len(events) != 1 {
		t.Errorf("%d events of 1", len(events))
	}
	if _, _, damaged := f.Damage(); damaged || f.Health().Truncated {
		t.Error("a half written section counts as damage")
	}
	bad := append(bytes.Clone(file.Bytes()), make([]byte, section.MaxBytes+1)...)
	bad[half+20] ^= 1
	readOn(t, f)
	write(bad)
	readOn(t, f)
	if offset, reason, damaged := f.Damage(); !damaged || offset != int64(half) ||
		!strings.Contains(reason, "checksum") {
		t.Errorf("damage at %d: %q, %v", offset, reason, damaged)
	}
}
