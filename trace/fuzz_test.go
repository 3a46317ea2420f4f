package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/faults"
	"memtrace/internal/section"
)

// FuzzReader: any bytes return a reader or an error, never both or neither; reading ends with io.EOF, and what was read
// has a text that can be encoded. Each input is also read with its checksums made right, or the fuzzer would never get
// past them, and with the faults that it chooses: what precedes them is read as it was, and those that a checksum
// covers are reported.
func FuzzReader(f *testing.F) {
	var symbols symbolEncoder
	for _, s := range someSymbols(3) {
		symbols.add(s)
	}
	epilogue := withSection(section.Symbols, symbols.finish(), 0)[section.HeadSize:]
	killed := everyLine()[:strings.LastIndex(everyLine(), "end reason")]
	seeds := [][]byte{fileHead(), append(encode(f, everyLine()), epilogue...),
		encodeTrace(f, trainingStream(900, 3), 200), encode(f, killed),
		withKeyframes(f, encodeTrace(f, trainingStream(900, 3), 200), 9, 9)}
	var others []*faults.Trace
	for i, file := range seeds {
		others = append(others, faults.Parse(file))
		for n := range 40 {
			f.Add(file, []byte(faults.Random(uint64(100*i+n))))
		}
	}
	f.Fuzz(func(t *testing.T, file, chosen []byte) {
		whole, choices := faults.Parse(file), faults.Choices(chosen)
		readAnything(t, file)
		readAnything(t, whole.Repaired())
		damaged := whole.Damage(&choices, others)
		readAnything(t, damaged.Data)
		checkDamaged(t, whole, damaged)
	})
}

// checkDamaged reads a whole trace and what damage made of it: events of blocks before the damage are unchanged.
func checkDamaged(t *testing.T, whole *faults.Trace, damaged faults.Damaged) {
	before, ends, h := readBlocks(t, whole.Data)
	if h == nil || h.Truncated || h.Altered != "" || h.Trailing != 0 || h.Torn.Stretches+h.Restored.Stretches > 0 {
		return
	}
	for n := len(ends); damaged.First >= 0 && n > 0 && ends[n-1] > damaged.First; n-- {
		before = before[:n-1]
	}
	events, _, h := readBlocks(t, damaged.Data)
	switch {
	case h == nil && damaged.First >= 0 && damaged.First < section.HeadSize:
		return
	case h == nil || len(events) < len(before):
		t.Fatalf("%s: %d events of %d that stand before offset %d", damaged.How, len(events), len(before),
			damaged.First)
	}
	wantEvents(t, events[:len(before)], before)
	if damaged.Kind == faults.Bytes && damaged.First >= 0 {
		checkReported(t, whole, damaged, h)
	}
}

// intact reports whether a file consists of whole sections with right checksums.
func intact(file []byte) bool {
	t := faults.Parse(file)
	return len(t.Rest) == 0 && bytes.Equal(t.Repaired(), file)
}

// readBlocks returns a trace's events, and for each where the block ends that holds it; nil: it cannot be read.
func readBlocks(t *testing.T, file []byte) (events []Event, ends []int, _ *Health) {
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, nil, nil
	}
	for len(events) < 1<<20 {
		batch, err := r.ReadBatch()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		events, ends = append(events, batch...), append(ends, slices.Repeat([]int{int(r.Offset())}, len(batch))...)
	}
	h := r.Health()
	return events, ends, &h
}

// checkReported checks that damage with wrong checksums is reported, at the section where it begins.
func checkReported(t *testing.T, whole *faults.Trace, damaged faults.Damaged, h *Health) {
	start, end := whole.SectionAt(damaged.First), whole.EndAt()
	switch {
	case damaged.First == len(damaged.Data) && damaged.First == start: // cut between sections, as a kill leaves it
		if h.Truncated {
			t.Errorf("%s: cut between sections, and damaged at %d: %s", damaged.How, h.TruncatedAt, h.Reason)
		}
	case start > end:
		if h.Truncated || h.Trailing == 0 {
			t.Errorf("%s: damage behind the end, and %+v", damaged.How, h)
		}
	case intact(damaged.Data): // what came is whole sections as well
	case !h.Truncated && h.Altered != "": // repeated sections: the end shows it, whatever else is damaged after it
	case !slices.Contains([]int64{h.Restored.At, h.Torn.At, h.TruncatedAt}, int64(start)):
		t.Errorf("%s: damage at %d, in the section at %d, and %+v", damaged.How, damaged.First, start, h)
	}
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
	events, most := uint64(0), MaxBlockEvents*(1+uint64(len(file))/24)
	for {
		batch, err := r.ReadBatch()
		if err == io.EOF {
			break
		}
		if err != nil || len(batch) == 0 {
			t.Fatalf("batch of %d, error %v", len(batch), err)
		}
		if events += uint64(len(batch)); events > most {
			t.Fatalf("more than %d events in %d bytes", most, len(file))
		}
		if events > 1<<20 {
			return // small files can hold long runs; enough was seen
		}
	}
	h := r.Health()
	if h.Events != events || h.Bytes > int64(len(file)) || h.Truncated != (h.Reason != "") {
		t.Fatalf("%d events, health %+v", events, h)
	}
	r.Tables().ModuleAt(1)
	_, _ = ReadIndex(bytes.NewReader(file), int64(len(file)))
	readKeyframes(file)
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
