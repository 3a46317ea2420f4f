package trace

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"memtrace/internal/section"
)

// countedFile counts the bytes that are read.
type countedFile struct {
	*bytes.Reader
	read int
}

func (f *countedFile) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.read += n
	return n, err
}

// growing writes a trace of blocks of events, with a dictionary, whose process runs. It returns it, and its size before
// the last block.
func growing(t *testing.T, blocks int) (file []byte, last int) {
	t.Helper()
	var to bytes.Buffer
	w, err := NewWriter(&to, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.WriteString(1, "a tag"); err != nil {
		t.Fatal(err)
	}
	seq := uint64(0)
	for range blocks {
		last = to.Len()
		for range 20_000 {
			seq++
			e := Event{Kind: EventAlloc, Seq: seq, Time: int64(seq * seq % 7919), Addr: seq * 7919 << 9,
				Size: seq % 4093}
			if err := w.WriteEvents([]Event{e}); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(seq); err != nil {
			t.Fatal(err)
		}
	}
	return to.Bytes(), last
}

// readRest reads a source to its present end and returns how many events that were.
func readRest(t *testing.T, r *Reader) (events int) {
	t.Helper()
	for {
		batch, err := r.ReadBatch()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events += len(batch)
	}
}

// TestGoOnReadsLittle: a reader that goes on from a bookmark reads what follows it, the dictionary and the headers of
// the sections before, and no event of them: ten times as long a run costs 16 bytes a section more.
func TestGoOnReadsLittle(t *testing.T) {
	for _, blocks := range []int{2, 20} {
		file, last := growing(t, blocks)
		first, err := NewReader(bytes.NewReader(file[:last]), int64(last))
		if err != nil {
			t.Fatal(err)
		}
		readRest(t, first)
		var state State
		if !first.KeepReading(&state) {
			t.Fatal("the reader cannot be kept")
		}
		from := &countedFile{Reader: bytes.NewReader(file)}
		r, err := NewReader(from, int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if !r.GoOnReading(&state) {
			t.Fatal("the state is refused")
		}
		events, h := readRest(t, r), r.Health()
		if !r.CameBack() || events != 20_000 || h.Events != uint64(20_000*blocks) || h.Gaps > 0 {
			t.Errorf("%d blocks: came back %v, %d events, %+v", blocks, r.CameBack(), events, h)
		}
		sections := int(h.Sections)
		if most := len(file) - last + 1000 + sections*section.HeaderSize; from.read > most || sections > 4*blocks+4 {
			t.Errorf("%d blocks: %d of %d bytes in %d sections were read, at most %d are needed", blocks, from.read,
				len(file), sections, most)
		}
	}
}
