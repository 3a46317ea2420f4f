package trace

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"memtrace/cuda"
)

// encodeTrace writes events, flushing after every flushEvery of them, and closes the trace.
func encodeTrace(t testing.TB, events []Event, flushEvery int) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for chunk := range slices.Chunk(events, flushEvery) {
		if err := w.WriteEvents(chunk); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(0); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(End{Reason: "exit"}); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// readAll reads a trace to its end; reading from memory cannot fail.
func readAll(t testing.TB, file []byte) ([]Event, *Reader) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	for {
		batch, err := r.ReadBatch()
		if err == io.EOF {
			return events, r
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			t.Fatal("an empty batch without an error")
		}
		events = append(events, batch...)
	}
}

// wantEvents fails with the first difference.
func wantEvents(t testing.TB, got, want []Event) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("event %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
}

func TestRoundTripEveryKindAndExtremeValues(t *testing.T) {
	var events []Event
	for kind := EventAlloc; kind < eventKindCount; kind++ {
		full := Event{Seq: 1<<64 - 1, Time: -1 << 63, Addr: 1<<64 - 1, Size: 1<<64 - 1, Stream: 1<<64 - 1,
			Allocated: 1<<64 - 1, Reserved: 1 << 63,
			Handle: 1<<64 - 1, Count: 1<<64 - 1, Stack: 1<<32 - 1, PyStack: 1<<32 - 1, Tag: 1<<32 - 1, Name: 1<<32 - 1,
			Thread: 1<<32 - 1,
			Status: -1 << 31, API: 1<<16 - 1, Runtime: 1<<16 - 1, Device: -1 << 15, Level: cuda.Level(255), Mem: 255,
			Flags: 255, Object: 255}
		small := Event{Seq: uint64(kind), Time: 1<<63 - 1, Addr: 1, Size: 1, Device: -1, Status: 1<<31 - 1}
		events = append(events, keepFields(full, kind), keepFields(small, kind), keepFields(full, kind),
			keepFields(Event{}, kind))
	}
	got, r := readAll(t, encodeTrace(t, events, 7))
	wantEvents(t, got, events)
	if h := r.Health(); h.Truncated || h.Events != uint64(len(events)) || h.Blocks != uint64((len(events)+6)/7) {
		t.Errorf("health %+v", h)
	}
}

// keepFields returns an event of the given kind with the fields of ev that the kind has.
func keepFields(ev Event, kind EventKind) Event {
	kept := []Event{{Kind: kind}}
	source := []Event{ev}
	value := make([]uint64, 1)
	for _, f := range EventSpecs[kind].Fields {
		gather(value, f, source)
		scatter(value, f, kept)
	}
	return kept[0]
}

func TestBlocksCloseWhenFull(t *testing.T) {
	events := trainingStream(MaxBlockEvents+5000, 1)
	got, r := readAll(t, encodeTrace(t, events, len(events)))
	wantEvents(t, got, events)
	if h := r.Health(); h.Blocks != 2 || h.Gaps != 0 || h.MaxSeq != uint64(len(events)) {
		t.Errorf("health %+v", h)
	}
}
