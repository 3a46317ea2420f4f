package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"memtrace/internal/faults"
	"memtrace/internal/guest"
	"memtrace/trace"
)

// FuzzSpool: whatever the damage to a spool, or to the trace beside it, each reader refuses it or reads it within
// bounds; what is missing is reported; events whose records and ways to them were left alone come out as they were; and
// merging spool and trace changes no figure. A spool has no checksums: the contents of a record are trusted.
//
// beside is empty where a spool has no trace. Each input is read as it is, and with the faults that it chooses.
func FuzzSpool(f *testing.F) {
	seeds := handSeeds(f)
	if worker := flag.Lookup("test.fuzzworker"); worker.Value.String() == "false" { // workers are sent their inputs
		seeds = append(seeds, recordedSeeds(f)...)
	}
	faulty := 8
	if testing.Short() {
		faulty = 2
	}
	for i, s := range seeds {
		f.Add(s.spool, s.trace, []byte{})
		for n := range faulty {
			f.Add(s.spool, s.trace, []byte(faults.Random(uint64(100*i+n))))
		}
	}
	for _, data := range damaged() {
		f.Add(data, []byte{}, []byte{})
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, spool, beside, chosen []byte) {
		if len(spool) > 1<<20 || len(beside) > 1<<20 {
			return
		}
		whole := files{spool, beside}
		before := readRecording(t, whole.write(t, dir), whole, 0)
		choices := faults.Choices(chosen)
		by := choices.IntN(3)
		d := newFaultySpool(whole, &choices)
		path := d.write(t, dir)
		got := readRecording(t, path, d.files, by)
		if got == nil {
			return
		}
		if before != nil {
			d.compare(t, before, got)
			overwriteLive(t, whole, d.files, dir)
		}
		followRecording(t, path, d.files, len(got.events))
		drainRecording(t, dir, d.spool)
		mergeRecording(t, path, d.files, got, by)
	})
}

// files are a spool and the trace beside it; the trace may be empty.
type files struct{ spool, trace []byte }

func (p files) size() int { return len(p.spool) + len(p.trace) }

// events is how many events fit.
func (p files) events() int {
	if len(p.trace) == 0 {
		return len(p.spool) / recordSize
	}
	return len(p.spool)/recordSize + trace.MaxBlockEvents*(1+len(p.trace)/24)
}

// write writes both and returns the trace's path.
func (p files) write(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "r.bin")
	os.Remove(path)
	err := os.WriteFile(path+Extension, p.spool, 0o600)
	if err == nil && len(p.trace) > 0 {
		err = os.WriteFile(path, p.trace, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// refused reports whether an error is one with which a recording may be refused.
func refused(err error) bool {
	for _, e := range []error{ErrNotSpool, ErrVersion, trace.ErrNotTrace, trace.ErrVersion, trace.ErrEmpty,
		os.ErrNotExist} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// pathOf returns what a reader opens: the trace, or without one the spool.
func pathOf(path string) string {
	if _, err := os.Stat(path); err != nil {
		return path + Extension
	}
	return path
}

// followRecording looks twice, as top does; nothing changes in between.
func followRecording(t *testing.T, path string, p files, want int) {
	t.Helper()
	tracePath := path
	if pathOf(path) != path {
		tracePath = ""
	}
	f, err := Follow(tracePath, path+Extension)
	if err != nil {
		t.Fatalf("follow: %v", err)
	}
	defer f.Close()
	got := &recording{events: map[uint64]trace.Event{}}
	for look := range 2 {
		if err := f.Refresh(); err != nil {
			t.Fatalf("follow: %v", err)
		}
		if n := got.take(t, f, p); look == 1 && n > 0 {
			t.Errorf("looked at again, there are %d events more", n)
		}
	}
	if len(got.events) != want {
		t.Errorf("followed, there are %d events, not %d", len(got.events), want)
	}
}

// overwriteLive reads a spool and then another one in its place, as if a process had scribbled over its spool.
func overwriteLive(t *testing.T, whole, damaged files, dir string) {
	t.Helper()
	live, data := filepath.Join(dir, "live"), bytes.Clone(whole.spool)
	if err := os.WriteFile(live, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Follow("", live)
	if err != nil {
		return // the trace alone was read
	}
	defer f.Close()
	got := &recording{events: map[uint64]trace.Event{}, rewritten: true}
	for range 2 {
		if err := f.Refresh(); err != nil {
			t.Fatalf("live: %v", err)
		}
		got.take(t, f, files{append(bytes.Clone(data), data...), nil})
		f.Health()
		copy(data, damaged.spool)
		file, err := os.OpenFile(live, os.O_WRONLY, 0)
		if err == nil {
			_, err = file.Write(data)
			file.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// drainRecording reads a copy as the drainer does, which releases segments; the process that would use them is not
// there.
func drainRecording(t *testing.T, dir string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, "drained")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(path, true)
	if err != nil {
		return // the trace alone was read
	}
	defer s.Close()
	w, err := trace.NewWriter(io.Discard, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cursor, most := NewCursor(s), len(s.data)/recordSize*(int(s.ringsUsed())+1)
	losses := NewLosses(cursor)
	for round := range 4 {
		events, watermark, _ := cursor.Collect(round == 3)
		lost := losses.Take(round == 3)
		if len(events) > most {
			t.Fatalf("drained, there are %d events in %d bytes", len(events), len(s.data))
		}
		// The writer may refuse what no recorder would write: numbers out of order, oversized names.
		if cursor.Dictionary(w) != nil || w.WriteEvents(lost) != nil || w.WriteEvents(events) != nil ||
			w.Flush(watermark) != nil {
			return
		}
		cursor.Release()
	}
}

// recordKilled starts a recorder that kills itself and returns its trace's path.
func recordKilled(t testing.TB, mode string, env ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.bin")
	cmd := exec.Command(guest.Recorder(t, "testdata/guest/recorder.c"), "3", "400", mode)
	cmd.Env = append(append(os.Environ(), "MEMTRACE_OUTPUT="+path), env...)
	_ = cmd.Run()
	return path
}

// compact returns a recorded spool without its unused part, so that thousands of copies cost little.
func compact(t testing.TB, path string) []byte {
	t.Helper()
	s, err := Open(path+Extension, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rings, entries, segments := s.ringsUsed(), s.data.load32(offIndexUsed), s.data.load32(offSegmentsUsed)
	dataUsed := (s.data.load64(offDataUsed) + 63) &^ 63
	out := bytes.Clone(s.data[:pageSize])
	put := func(max, offset int, count uint32, size uint64, from uint64) {
		if max != 0 {
			binary.LittleEndian.PutUint32(out[max:], count)
		}
		binary.LittleEndian.PutUint64(out[offset:], uint64(len(out)))
		out = append(out, s.data[from:from+uint64(count)*size]...)
	}
	put(offRingsMax, offRingsOffset, rings, ringSize, s.ringsOffset)
	put(offIndexMax, offIndexOffset, entries, indexEntrySize, s.indexOffset)
	binary.LittleEndian.PutUint64(out[offDataMax:], dataUsed)
	put(0, offDataOffset, uint32(dataUsed), 1, s.dataOffset)
	put(offSegmentsMax, offSegmentsOffset, segments, segmentSize, s.segmentsOffset)
	binary.LittleEndian.PutUint64(out[offFileSize:], uint64(len(out)))
	return out
}

// handSeeds are a spool that was laid out by hand, alone and beside a trace to which its first records were moved.
func handSeeds(t testing.TB) []files {
	t.Helper()
	seeds := []files{{spool: whole().data}}
	for _, cut := range []int{0, 40} {
		path := filepath.Join(t.TempDir(), "moved.bin")
		moved(t, path, whole(), cut)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, files{whole().data, data})
	}
	return seeds
}

// recordedSeeds are spools of killed processes, among them one with calls in flight and one that was full.
func recordedSeeds(t testing.TB) (seeds []files) {
	t.Helper()
	for _, path := range []string{recordKilled(t, "kill"), recordKilled(t, "hold-kill"),
		recordKilled(t, "kill", "MEMTRACE_SPOOL_MAX=96K")} {
		seeds = append(seeds, files{spool: compact(t, path)})
	}
	return seeds
}
