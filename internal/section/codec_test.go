package section

import (
	"bytes"
	"testing"
)

// A reader reallocated its buffer for each block that was larger than the section before it, since the buffer was cut
// to its contents: a fiftieth of a report's time.
func TestSectionBufferIsReused(t *testing.T) {
	enc, err := newCompressor()
	if err != nil {
		t.Fatal(err)
	}
	dec, err := newDecompressor()
	if err != nil {
		t.Fatal(err)
	}
	var room []byte
	expand := func(size int) {
		t.Helper()
		want := bytes.Repeat([]byte{7, 1, 2}, size/3)
		got, err := decompress(dec, Events, room, enc.EncodeAll(want, nil), len(want))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes of %d: %v", len(got), len(want), err)
		}
		room = got
	}
	expand(60_000)
	first := &room[0]
	for _, size := range []int{300, 60_000, 3, 30_000} {
		if expand(size); &room[0] != first {
			t.Fatalf("%d bytes took room of their own", size)
		}
	}
}
