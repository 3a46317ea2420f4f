package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/analyzer"
	"memtrace/cuda"
	"memtrace/internal/moment"
	"memtrace/internal/render"
	"memtrace/internal/tracefile"
	"memtrace/trace"
)

// longTrace writes a trace of so many events, of a program that holds some blocks and replaces them in turn.
func longTrace(t *testing.T, path string, events int) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w, err := trace.NewWriter(file, trace.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const held = 500
	batch := make([]trace.Event, 0, 2*held)
	for n := 0; n < events; n++ {
		kind, block := trace.EventAlloc, uint64(n/2%held)
		if n%2 == 0 && n >= 2*held {
			kind = trace.EventFree
		}
		if n%2 == 0 && n < 2*held {
			block += held // stays
		}
		batch = append(batch, trace.Event{Kind: kind, Seq: uint64(n + 1), Time: int64(n) * 1000, Thread: 1,
			Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: 0x7f00_0000_0000 + block<<20,
			Size: 512 * (1 + block%7)})
		if len(batch) == cap(batch) {
			if err := w.WriteEvents(batch); err != nil {
				t.Fatal(err)
			}
			batch = batch[:0]
		}
	}
	if err := w.Close(trace.End{Reason: "exit"}); err != nil {
		t.Fatal(err)
	}
}

// TestReportFromKeyframe: a report of a window of a trace with keyframes says what it said without them, and keyframes
// stay below 0.15 bytes an event.
func TestReportFromKeyframe(t *testing.T) {
	if testing.Short() {
		t.Skip("reads millions of events several times")
	}
	const events = 2_600_000
	path := filepath.Join(t.TempDir(), "t.bin")
	longTrace(t, path, events)
	a := newApp(strings.NewReader(""), os.Stdout, os.Stderr)
	a.Quiet = true
	report := func() string {
		var options analyzer.Options
		options.Groupings = []string{"tag", "api"}
		options.From, _ = moment.Parse("2.2s")
		options.To, _ = moment.Parse("2.3s")
		s, err := tracefile.SummarizeAny(&a.Console, path, options)
		if err != nil {
			t.Fatal(err)
		}
		s.Health.Bytes = 0 // keyframes are part of the file
		var text bytes.Buffer
		if err := render.JSON(&text, s); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	size := func() int64 {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return st.Size()
	}
	want, before := report(), size()
	if err := addKeyframes(a, path); err != nil {
		t.Fatal(err)
	}
	if added := size() - before; added == 0 || float64(added) > 0.15*events {
		t.Errorf("keyframes take %d bytes of %d events", added, events)
	}
	if got := report(); got != want {
		t.Errorf("from a keyframe:\n%s\nfrom the beginning:\n%s", got, want)
	}
	checkCompacted(t, a, path)
	before = size()
	if err := addKeyframes(a, path); err != nil || size() != before {
		t.Errorf("added twice: %v, %d bytes instead of %d", err, size(), before)
	}
}

// checkCompacted looks for keyframes in a compacted copy.
func checkCompacted(t *testing.T, a *app, path string) {
	t.Helper()
	to := path + ".small.bin"
	o := compactOptions{copyFlags: copyFlags{output: to}, keyframes: true}
	if err := o.max.Set("1G"); err != nil {
		t.Fatal(err)
	}
	if err := a.compact(o, path); err != nil {
		t.Fatal(err)
	}
	run, err := tracefile.OpenAgain(to)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if list := run.Keyframes(); list == nil || len(list.Places) == 0 {
		t.Errorf("the copy has no keyframes: %+v", list)
	}
}
