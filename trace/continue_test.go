package trace

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"memtrace/internal/section"
)

// readOn reads everything up to the present end.
func readOn(t *testing.T, r *Reader) []Event {
	t.Helper()
	var events []Event
	for {
		batch, err := r.ReadBatch()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, batch...)
	}
}

// A file is seen at every length that it has while it is written: what is read bit by bit is what is read at once, no
// event twice and none left out.
func TestContinueGrowingFile(t *testing.T) {
	want := trainingStream(900, 11)
	whole := encodeTrace(t, want, 100)
	for _, sized := range []bool{true, false} {
		size := func(n int) int64 {
			if sized {
				return int64(n)
			}
			return -1
		}
		r, err := NewReader(bytes.NewReader(whole[:section.HeadSize]), size(section.HeadSize))
		if err != nil {
			t.Fatal(err)
		}
		got := readOn(t, r)
		for n := section.HeadSize + 1; n <= len(whole); n += 7 {
			if !r.Continue(bytes.NewReader(whole[r.Offset():n]), size(n)) {
				t.Fatalf("sized %v: reading does not go on at %d of %d bytes", sized, n, len(whole))
			}
			got = append(got, readOn(t, r)...)
		}
		if r.Continue(bytes.NewReader(whole[r.Offset():]), size(len(whole))) {
			got = append(got, readOn(t, r)...)
		}
		wantEvents(t, got, want)
		if _, ended := r.End(); !ended {
			t.Error("the end was not read")
		}
		if h := r.Health(); h.Truncated || h.Gaps != 0 || h.Events != uint64(len(want)) {
			t.Errorf("health %+v", h)
		}
		if r.Continue(bytes.NewReader(nil), 0) {
			t.Error("reading goes on behind the end")
		}
	}
}

func TestContinueBeforeTheEnd(t *testing.T) {
	whole := encodeTrace(t, trainingStream(900, 11), 100)
	r, err := NewReader(bytes.NewReader(whole), int64(len(whole)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadBatch(); err != nil {
		t.Fatal(err)
	}
	if r.Continue(bytes.NewReader(nil), 0) {
		t.Error("a reader in the middle of a block takes another file")
	}
}

func TestFill(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.WriteInfo(Info{"b": "2"}), w.WriteString(2, "two"), w.Close(End{})); err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(&file, -1)
	if err != nil {
		t.Fatal(err)
	}
	tables, info := &Tables{}, Info{"a": "1"}
	tables.AddString(1, "one")
	r.Fill(tables, info)
	readOn(t, r)
	if tables.String(1) != "one" || tables.String(2) != "two" || r.Tables() != tables || info["a"] != "1" ||
		info["b"] != "2" {
		t.Errorf("strings %q %q, info %v", tables.String(1), tables.String(2), info)
	}
}
