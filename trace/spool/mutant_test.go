package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"testing"

	"memtrace/analyzer"
	"memtrace/analyzer/render"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/internal/guest"
	"memtrace/internal/mutant"
	"memtrace/trace"
	"memtrace/trace/textform"
)

// TestMutantsOfSpools: whatever becomes of a spool, or of the trace beside it, it is read within bounds by everybody
// who reads spools; what is missing then is said; events whose records and ways to them were left alone come out as
// they were; and merging spool and trace changes no figure. A spool has no checksums: what a record holds is believed.
func TestMutantsOfSpools(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	seeds := seedSpools(t)
	dir := t.TempDir()
	for _, s := range seeds {
		var whole mutant.Mutant
		whole.Files = s.files()
		s.want = readRecording(&whole, writeRecording(t, dir, whole.Files))
		if s.want == nil || len(s.want.events) == 0 {
			t.Fatalf("%s cannot be read", s.name)
		}
	}
	mutant.Run(t, "spools", 60, func(m *mutant.Mutant) {
		seed := seeds[m.Rand.IntN(len(seeds))]
		damaged := seed.mutate(m)
		path := m.Write(t, "mutant.bin")
		if seed.trace == nil {
			os.Remove(path)
		}
		got := readRecording(m, path)
		if got == nil {
			return
		}
		damaged.compare(m, seed.want, got)
		followRecording(m, path, got)
		overwriteLive(m, t, seed, path)
		drainRecording(m, t, path)
		mergeRecording(m, t, path, got)
	})
}

// recording is what was read.
type recording struct {
	events  map[uint64]trace.Event // those of losses left out
	health  trace.Health
	ended   string
	lost    [3]uint64
	summary *report.Summary
}

func writeRecording(t *testing.T, dir string, files map[string][]byte) string {
	t.Helper()
	path := filepath.Join(dir, "seed.bin")
	os.Remove(path)
	for extension, data := range files {
		if err := os.WriteFile(path+extension, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// known are the errors with which a recording may be refused.
var known = []error{ErrNotSpool, ErrVersion, trace.ErrNotTrace, trace.ErrVersion, trace.ErrEmpty, os.ErrNotExist}

func refused(err error) bool {
	for _, e := range known {
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

// readRecording reads as the command does, nil if the recording is refused.
func readRecording(m *mutant.Mutant, path string) *recording {
	size := uint64(0)
	for _, data := range m.Files {
		size += uint64(len(data))
	}
	got := &recording{events: map[uint64]trace.Event{}}
	var run *Run
	var err error
	used := mutant.Allocated(func() {
		if run, err = OpenRun(pathOf(path)); err == nil {
			got.take(m, run, size)
		}
	})
	if err != nil {
		if !refused(err) {
			m.Faultf("refused: %v", err)
		}
		return nil
	}
	defer run.Close()
	if limit := 8<<20 + 256*size + 4096*uint64(len(got.events)); used > limit {
		m.Faultf("%d bytes taken for %d of recording and %d events, more than %d", used, size, len(got.events), limit)
	}
	got.health, got.ended = run.Health(), run.Ended()
	got.lost[0], got.lost[1], got.lost[2] = run.Lost()
	got.summarize(m, path)
	return got
}

// take reads a source to its end: each number once, and no more events than the files have room for.
func (g *recording) take(m *mutant.Mutant, src trace.Source, size uint64) {
	count, most := uint64(0), size/recordSize+trace.MaxBlockEvents*(1+uint64(len(m.Files[""]))/24)
	for {
		batch, err := src.ReadBatch()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || len(batch) == 0 {
			m.Faultf("a batch of %d events, error %v", len(batch), err)
			return
		}
		for _, e := range batch {
			if e.Kind == trace.EventLost {
				continue
			}
			if _, twice := g.events[e.Seq]; twice && len(m.Files[Extension]) > 0 {
				m.Faultf("event %d came twice", e.Seq)
			}
			g.events[e.Seq] = e
		}
		if count += uint64(len(batch)); count > most {
			m.Faultf("more than %d events", most)
			return
		}
	}
}

// summarize makes a report, as text and as JSON, and a dump.
func (g *recording) summarize(m *mutant.Mutant, path string) {
	run, err := OpenRun(pathOf(path))
	if err != nil {
		m.Faultf("opened a second time: %v", err)
		return
	}
	defer run.Close()
	by := [][]string{nil, {"tag", "api", "thread", "device"}, {"library", "name", "module"}}[m.Number%3]
	if g.summary, err = analyzer.Summarize(run, analyzer.Options{Question: analyzer.Question{Groupings: by}}); err !=
		nil {
		m.Faultf("summary: %v", err)
		return
	}
	for _, fault := range mutant.Faults(g.summary) {
		m.Faultf("summary: %s", fault)
	}
	if err := errors.Join(render.JSON(io.Discard, g.summary),
		render.Text(io.Discard, g.summary, layout.Options{})); err != nil {
		m.Faultf("report: %v", err)
	}
	again, err := OpenRun(pathOf(path))
	if err != nil {
		m.Faultf("opened a third time: %v", err)
		return
	}
	defer again.Close()
	if err := textform.Write(io.Discard, again); err != nil {
		m.Faultf("dump: %v", err)
	}
}

// followRecording looks twice, as top does; nothing changes in between.
func followRecording(m *mutant.Mutant, path string, want *recording) {
	tracePath := path
	if pathOf(path) != path {
		tracePath = ""
	}
	f, err := Follow(tracePath, path+Extension)
	if err != nil {
		m.Faultf("follow: %v", err)
		return
	}
	defer f.Close()
	got := &recording{events: map[uint64]trace.Event{}}
	for range 2 {
		if err := f.Refresh(); err != nil {
			m.Faultf("follow: %v", err)
			return
		}
		got.take(m, f, uint64(len(m.Files[Extension])))
	}
	if len(got.events) != len(want.events) {
		m.Faultf("followed, there are %d events, not %d", len(got.events), len(want.events))
	}
}

// overwriteLive reads a recording and then the mutant in its place, as if a process had scribbled over its spool.
func overwriteLive(m *mutant.Mutant, t *testing.T, seed *seedSpool, path string) {
	live := path + ".live"
	data := bytes.Clone(seed.spool)
	if err := os.WriteFile(live, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Follow("", live)
	if err != nil {
		m.Faultf("live: %v", err)
		return
	}
	defer f.Close()
	got := &recording{events: map[uint64]trace.Event{}}
	for range 2 {
		if err := f.Refresh(); err != nil {
			m.Faultf("live: %v", err)
			return
		}
		got.take(m, f, 2*uint64(len(data)))
		f.Health()
		copy(data, m.Files[Extension])
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

// drainRecording reads a copy as the drainer does, which gives segments back.
func drainRecording(m *mutant.Mutant, t *testing.T, path string) {
	copied := path + ".drained"
	if err := os.WriteFile(copied, m.Files[Extension], 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(copied, true)
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
			m.Faultf("drained, there are %d events in %d bytes", len(events), len(s.data))
		}
		// The writer may refuse what no recorder would write.
		if cursor.Dictionary(w) != nil || w.WriteEvents(lost) != nil || w.WriteEvents(events) != nil ||
			w.Flush(watermark) != nil {
			return
		}
		cursor.Release()
	}
}

// mergeRecording merges the spool into the trace: all that was read before is read again.
func mergeRecording(m *mutant.Mutant, t *testing.T, path string, want *recording) {
	if err := Finalize(path); err != nil {
		if len(m.Files[""]) > 0 || want.health.Events == 0 {
			return // what the trace is, or events of unknown kinds, kept it from being merged: both files are left
		}
		m.Faultf("merged: %v", err)
		return
	}
	var alone mutant.Mutant
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone.Number, alone.Files = m.Number, map[string][]byte{"": data}
	got := readRecording(&alone, path)
	if got == nil {
		m.Faultf("merged, the trace is refused")
		return
	}
	if len(got.events) != len(want.events) || got.health.Gaps != want.health.Gaps ||
		got.health.InFlight != want.health.InFlight || got.lost != want.lost || got.ended != want.ended {
		m.Faultf("merged: %d events, %+v, lost %v, %s; before %d events, %+v, lost %v, %s", len(got.events), got.health,
			got.lost, got.ended, len(want.events), want.health, want.lost, want.ended)
	}
	if a, b := got.summary, want.summary; a != nil && b != nil &&
		!reflect.DeepEqual([]report.Level{a.Driver, a.Framework}, []report.Level{b.Driver, b.Framework}) {
		m.Faultf("merged: %+v %+v, before %+v %+v", a.Driver, a.Framework, b.Driver, b.Framework)
	}
	os.Remove(path)
}

// record starts the recorder with fresh files and returns its trace's path.
func recordKilled(t *testing.T, mode string, env ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "r.bin")
	cmd := exec.Command(guest.Recorder(t, "testdata/guest/recorder.c"), "3", "400", mode)
	cmd.Env = append(append(os.Environ(), "MEMTRACE_OUTPUT="+path), env...)
	_ = cmd.Run() // it kills itself
	return path
}

// compact returns a recorded spool without the room that it did not use, so that thousands of copies cost little.
func compact(t *testing.T, path string) []byte {
	t.Helper()
	s, err := Open(path+Extension, false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rings, entries, segments := s.ringsUsed(), s.load32(offIndexUsed), s.load32(offSegmentsUsed)
	dataUsed := (s.load64(offDataUsed) + 63) &^ 63
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

// seedSpools are a spool that was laid out by hand, alone and beside a trace to which its first records were moved, and
// those of killed processes: of one with calls in flight, and of one that ran out of room.
func seedSpools(t *testing.T) []*seedSpool {
	t.Helper()
	half := filepath.Join(t.TempDir(), "half.bin")
	moved(t, half, whole(), 0)
	cut := filepath.Join(t.TempDir(), "cut.bin")
	moved(t, cut, whole(), 40)
	seeds := []*seedSpool{{name: "by hand", spool: whole().data}}
	for _, path := range []string{half, cut} {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		seeds = append(seeds, &seedSpool{name: filepath.Base(path), spool: whole().data, trace: data})
	}
	for i, mode := range []string{"kill", "hold-kill", "kill"} {
		var env []string
		if i == 2 {
			env = []string{"MEMTRACE_SPOOL_MAX=96K"}
		}
		seeds = append(seeds, &seedSpool{name: fmt.Sprintf("recorded %d", i),
			spool: compact(t, recordKilled(t, mode, env...))})
	}
	return seeds
}
