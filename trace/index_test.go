package trace

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestIndexFindsBlocks(t *testing.T) {
	events := trainingStream(4000, 2)
	file := encodeTrace(t, events, 1000)
	index, err := ReadIndex(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	if len(index) != 4 {
		t.Fatalf("%d entries, want 4", len(index))
	}
	for i, e := range index {
		// A block can be read alone: put the file's head in front of it.
		part := append(fileHead(), file[e.Offset:]...)
		got, _ := readAll(t, part)
		wantEvents(t, got, events[i*1000:])
		if e.Events != 1000 || e.FirstTime != events[i*1000].Time || e.MaxSeq != events[i*1000+999].Seq {
			t.Errorf("entry %d: %+v", i, e)
		}
	}
}

func TestIndexOfLongRunStaysShort(t *testing.T) {
	var x indexBuilder
	const blocks = 3*maxIndexEntries + 5
	for i := range blocks {
		x.add(IndexEntry{Offset: int64(100 * i), Events: 2, MaxSeq: uint64(i), Watermark: uint64(i)})
	}
	entries, err := decodeIndex(appendIndex(nil, x.entries))
	if err != nil {
		t.Fatal(err)
	}
	var events uint64
	for i, e := range entries {
		if i > 0 && (e.Offset <= entries[i-1].Offset || e.MaxSeq <= entries[i-1].MaxSeq) {
			t.Fatalf("entry %d: %+v after %+v", i, e, entries[i-1])
		}
		events += e.Events
	}
	if len(entries) > maxIndexEntries || len(entries) < maxIndexEntries/2 || events != 2*blocks ||
		entries[len(entries)-1].Watermark != blocks-1 {
		t.Errorf("%d entries of %d events", len(entries), events)
	}
}

func TestIndexOfKilledRunIsAnError(t *testing.T) {
	file := mixedTrace(t)
	for n := range len(file) {
		if index, err := ReadIndex(bytes.NewReader(file[:n]), int64(n)); err == nil {
			t.Fatalf("cut at %d: index of %d entries", n, len(index))
		}
	}
	bad := bytes.Clone(file)
	binary.LittleEndian.PutUint64(bad[len(bad)-8:], 1<<63)
	if _, err := ReadIndex(bytes.NewReader(bad), int64(len(bad))); err == nil {
		t.Error("an offset past the end is accepted")
	}
}
