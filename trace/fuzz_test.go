package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"memtrace/trace/section"
)

// FuzzReader: any bytes give a reader or an error, never both or neither; reading ends with io.EOF, and what was read
// has a text that can be encoded. Each input is also read with its checksums made right, or the fuzzer would never get
// past them.
func FuzzReader(f *testing.F) {
	f.Add(encode(f, everyLine))
	f.Add(fileHead())
	var symbols symbolEncoder
	for _, s := range someSymbols(3) {
		symbols.add(s)
	}
	epilogue := withSection(section.Symbols, symbols.finish(), 0)[section.HeadSize:]
	f.Add(append(encode(f, everyLine), epilogue...))
	f.Fuzz(func(t *testing.T, file []byte) {
		readAnything(t, file)
		readAnything(t, withRightChecksums(file))
	})
}

func withRightChecksums(file []byte) []byte {
	file = bytes.Clone(file)
	for at := section.HeadSize; at+section.HeaderSize <= len(file); {
		h := section.ParseHeader(file[at:])
		body := file[at+section.HeaderSize:]
		if int64(h.Length) > int64(len(body)) {
			break
		}
		h.Put(file[at:], body[:h.Length])
		at += section.HeaderSize + int(h.Length)
	}
	return file
}

func readAnything(t *testing.T, file []byte) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if (r == nil) == (err == nil) {
		t.Fatalf("reader %v, error %v", r, err)
	}
	if err != nil {
		if !errors.Is(err, ErrNotTrace) && !errors.Is(err, ErrVersion) && !errors.Is(err, ErrEmpty) {
			t.Fatalf("unexpected error %v", err)
		}
		return
	}
	var events uint64
	for {
		batch, err := r.ReadBatch()
		if err == io.EOF {
			break
		}
		if err != nil || len(batch) == 0 {
			t.Fatalf("batch of %d, error %v", len(batch), err)
		}
		if events += uint64(len(batch)); events > 1<<20 {
			return // small files can hold long runs; enough was seen
		}
	}
	h := r.Health()
	if h.Events != events || h.Bytes > int64(len(file)) || h.Truncated != (h.Reason != "") {
		t.Fatalf("%d events, health %+v", events, h)
	}
	r.Tables().ModuleAt(1)
	_, _ = ReadIndex(bytes.NewReader(file), int64(len(file)))
	if events < 1000 {
		wantSameAhead(t, file)
	}
	if len(r.Tables().log) > 0 && events < 1000 {
		checkTextOf(t, file)
	}
}

// checkTextOf dumps a trace, encodes the text and dumps it again: the texts must agree, but for the comment on damage.
func checkTextOf(t *testing.T, file []byte) {
	text := dump(t, file)
	var again bytes.Buffer
	if err := EncodeText(&again, strings.NewReader(text)); err != nil {
		t.Fatalf("the dump of a trace does not parse: %v", err)
	}
	canonical := dump(t, again.Bytes())
	if third := dump(t, encode(t, canonical)); third != canonical {
		t.Fatalf("text changes:\n%s\n%s", canonical, third)
	}
}

// FuzzBlock: events made from the input survive a block, whatever the mix of kinds and however large the batches.
func FuzzBlock(f *testing.F) {
	f.Add([]byte{1, 0, 1, 2, 3, 4, 5, 6, 7}, uint16(3))
	f.Add(bytes.Repeat([]byte{1, 16, 2, 16, 1, 17, 6, 255}, 90), uint16(1000))
	f.Fuzz(func(t *testing.T, data []byte, batch uint16) {
		events := eventsFrom(data)
		if len(events) == 0 {
			return
		}
		b := newBlockEncoder()
		b.append(events)
		block := b.finish(nil, 42)
		var d blockDecoder
		if err := d.open(block); err != nil {
			t.Fatal(err)
		}
		var got []Event
		var part Batch
		for {
			if err := d.next(&part, int(batch)%(2*batchEvents)+1); err != nil {
				t.Fatal(err)
			}
			if part.Len() == 0 {
				break
			}
			got = append(got, part.Rows()...)
		}
		wantEvents(t, got, events)
		// A second block of the same encoder does not depend on the first.
		b.append(events)
		if !bytes.Equal(b.finish(nil, 42), block) {
			t.Fatal("the same events give another block the second time")
		}
	})
}

// eventsFrom makes events from bytes: a kind, then for each field a choice between zero, the last value, a step from it
// and a value of its own.
func eventsFrom(data []byte) (events []Event) {
	var last [fieldCount]uint64
	take := func(n int) uint64 {
		var b [8]byte
		n = copy(b[:n], data)
		data = data[n:]
		return binary.LittleEndian.Uint64(b[:])
	}
	for len(data) > 0 && len(events) < 5000 {
		one := []Event{{Kind: EventKind(1 + take(1)%(eventKindCount-1))}}
		for _, f := range EventSpecs[one[0].Kind].Fields {
			switch choice := take(1); choice % 8 {
			case 0:
				last[f] = 0
			case 1:
				last[f] += choice
			case 2:
				last[f] = take(8)
			case 3:
				last[f] = take(2)
			}
			value := []uint64{last[f]}
			scatter(value, f, one) // keeps what fits the field
			gather(value, f, one)
			last[f] = value[0]
		}
		events = append(events, one[0])
	}
	return events
}
