package trace

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
)

// A file that a killed program left is continued after its last whole section, as the finaliser of a spool does.
func TestAppendToCutFile(t *testing.T) {
	events := trainingStream(900, 6)
	whole := encodeTrace(t, events[:600], 200)
	starts := mapSections(t, whole).starts
	cut := whole[:starts[2]+5] // two blocks and a piece of the third
	before, r := readAll(t, cut)
	if len(before) != 400 {
		t.Fatalf("%d events before the cut", len(before))
	}
	file := bytes.NewBuffer(bytes.Clone(cut[:r.Offset()]))
	w, err := NewWriter(file, WriterOptions{Append: r.Offset(), Watermark: 450})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteEvents(events[400:]), w.Close(End{Reason: "killed"})); err != nil {
		t.Fatal(err)
	}
	if w.Offset() != int64(file.Len()) {
		t.Errorf("offset %d, file of %d bytes", w.Offset(), file.Len())
	}
	got, r := readAll(t, file.Bytes())
	want := append([]Event(nil), events...)
	for i := 400; i < 449; i++ {
		want[i].Flags |= FlagLate // numbered below the watermark
	}
	wantEvents(t, got, want)
	if h := r.Health(); h.Truncated || h.LateEvents != 49 || h.Gaps != 0 {
		t.Errorf("health %+v", h)
	}
	index, err := ReadIndex(bytes.NewReader(file.Bytes()), int64(file.Len()))
	if err != nil || len(index) != 1 || index[0].Offset != int64(starts[2]) {
		t.Errorf("index %+v, error %v", index, err)
	}
}

// failingWriter accepts a number of writes and half of the one after.
type failingWriter struct {
	bytes.Buffer
	left int
}

var errDisk = errors.New("no space left")

func (f *failingWriter) Write(b []byte) (int, error) {
	if f.left == 0 {
		n, _ := f.Buffer.Write(b[:len(b)/2])
		return n, errDisk
	}
	f.left--
	return f.Buffer.Write(b)
}

func TestFailedWriteStaysFailed(t *testing.T) {
	events := trainingStream(300, 8)
	disk := &failingWriter{left: 2}
	w, err := NewWriter(disk, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteEvents(events[:100]), w.Flush(0), w.WriteEvents(events[100:])); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(0); !errors.Is(err, errDisk) {
		t.Fatalf("flush to a full disk: %v", err)
	}
	disk.left = 100 // space again; but the file now ends in half a section, and nothing may follow it
	size := disk.Len()
	for name, err := range map[string]error{"events": w.WriteEvents(events), "flush": w.Flush(0),
		"string": w.WriteString(1, "x"), "close": w.Close(End{})} {
		if !errors.Is(err, errDisk) {
			t.Errorf("%s after a failed write: %v", name, err)
		}
	}
	if disk.Len() != size {
		t.Error("something was written behind half a section")
	}
	got, r := readAll(t, disk.Bytes())
	wantEvents(t, got, events[:100])
	if !r.Health().Truncated {
		t.Error("the cut section goes unnoticed")
	}
}

// countWrites counts calls, since a section in two of them could be cut between a kill and the next write.
type countWrites struct{ calls, bytes int }

func (c *countWrites) Write(b []byte) (int, error) { c.calls++; c.bytes += len(b); return len(b), nil }

func TestOneWriteForEachSection(t *testing.T) {
	var out countWrites
	w, err := NewWriter(&out, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(w.WriteInfo(Info{"a": "b"}), w.WriteString(1, "x"), w.WriteEvents(trainingStream(10, 1)),
		w.Flush(11), w.Flush(12), w.Close(End{}))
	// head; info, dictionary, events, index, parity in two copies, end
	if want := 1 + 6; err != nil || out.calls != want {
		t.Errorf("%d writes, want %d; error %v", out.calls, want, err)
	}
}

// The writer lives in the traced program: its memory must not grow with the trace.
func TestWriterMemoryIsBounded(t *testing.T) {
	events := trainingStream(MaxBlockEvents, 1)
	w, err := NewWriter(&countWrites{}, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pass := func() {
		for i := 0; i < len(events); i += 512 {
			if err := w.WriteEvents(events[i : i+512]); err != nil {
				t.Fatal(err)
			}
			if err := w.WriteString(StringID(i), "model.encoder.layer"); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(0); err != nil {
			t.Fatal(err)
		}
	}
	var before, after runtime.MemStats
	pass()
	pass()
	runtime.ReadMemStats(&before)
	for range 10 {
		pass()
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<10 {
		t.Errorf("10 blocks of %d events allocated %d bytes", len(events), grown)
	}
	runtime.KeepAlive(w)
}

func TestEmptyTrace(t *testing.T) {
	got, r := readAll(t, encodeTrace(t, nil, 1))
	if end, ok := r.End(); len(got) != 0 || !ok || end.EventCount != 0 || r.Health().Truncated {
		t.Errorf("%d events, end %+v, health %+v", len(got), end, r.Health())
	}
}
