package trace

import (
	"bytes"
	"encoding/binary"
	"testing"

	"memtrace/internal/section"
)

// A later version may add section kinds, dictionary entries, fields and event kinds without a new format version; this
// reader takes what it knows.
func TestSectionsOfUnknownKindAreSkipped(t *testing.T) {
	file := mixedTrace(t)
	all, _ := readAll(t, file)
	unknown := withSection(section.Kind(77), bytes.Repeat([]byte("new"), 50000), 0)[section.HeadSize:]
	empty := withSection(section.Samples, nil, 0)[section.HeadSize:]
	var changed []byte
	starts := mapSections(t, file).starts
	changed = append(changed, file[:section.HeadSize]...)
	for i, at := range starts[:len(starts)-1] {
		changed = append(append(changed, unknown...), empty...)
		changed = append(changed, file[at:starts[i+1]]...)
	}
	got, r := readAll(t, changed)
	wantEvents(t, got, all)
	if h := r.Health(); h.Truncated || h.SkippedSections != uint64(2*(len(starts)-1)) || h.Trailing != 0 {
		t.Errorf("health %+v", h)
	}
	changed[section.HeadSize+section.HeaderSize+70000] ^= 1
	if _, r := readAll(t, changed); r.Health().Torn.Stretches != 1 {
		t.Error("damage in a skipped section goes unnoticed")
	}
}

func TestUnknownDictionaryEntriesAreSkipped(t *testing.T) {
	var e entryEncoder
	payload := e.appendString(nil, 1, "one")
	payload = append(payload, 99, 3, 1, 2, 3)
	// a string entry with values that a later version appended
	payload = append(payload, byte(entryString), 5, 2, 1, 'x', 0xff, 0xff)
	_, r := readAll(t, withSection(section.Dictionary, payload, 0))
	if r.Tables().String(1) != "one" || r.Tables().String(2) != "x" || r.Health().Truncated {
		t.Errorf("strings %q, %q; health %+v", r.Tables().String(1), r.Tables().String(2), r.Health())
	}
}

// Earlier recorders wrote stacks of the caller alone, without a word on their end, and modules without what they were
// as files.
func TestShorterEntriesOfEarlierRecorders(t *testing.T) {
	payload := []byte{byte(entryStack), 3, 1, 1, 2, byte(entryModule), 7, 1, 2, 9, 2, 1, 'x', 0}
	_, r := readAll(t, withSection(section.Dictionary, payload, 0))
	tables := r.Tables()
	if r.Health().Truncated || len(tables.Stack(1)) != 1 || tables.StackEnd(1) != StackCaller {
		t.Errorf("stack %x, end %v; health %+v", tables.Stack(1), tables.StackEnd(1), r.Health())
	}
	if m := tables.Modules(); len(m) != 1 || m[0] != (Module{ID: 1, Start: 2, End: 9, Base: 2, Path: "x"}) {
		t.Errorf("modules %+v", m)
	}
}

func TestUnknownFieldsAndKindsAreSkipped(t *testing.T) {
	// Three events: an alloc with seq, size and the unknown field 40; one of the unknown kind 200 with seq and field
	// 41; an alloc again.
	seqs := columnEncoder{encoding: EncodingStep}
	seqs.append([]uint64{7, 8, 9}, nil)
	sizes := columnEncoder{encoding: EncodingPlain}
	sizes.append([]uint64{100, 300}, nil)
	b := []byte{5, 3, 2}
	b = binary.AppendUvarint(append(b, byte(EventAlloc)), 1<<FieldSeq|1<<FieldSize|1<<40)
	b = binary.AppendUvarint(binary.AppendUvarint(b, 200), 1<<FieldSeq|1<<41)
	b = append(b, 3, 0, 1, 0)
	for _, column := range [][]byte{seqs.finish(), sizes.finish(), {1, 2, 3}, {4}} {
		b = append(b, byte(EncodingPlain), byte(len(column)))
		if &column[0] == &seqs.buf[0] {
			b[len(b)-2] = byte(EncodingStep)
		}
		b = append(b, column...)
	}
	wantSameAhead(t, withSection(section.Events, b, 0))
	got, r := readAll(t, withSection(section.Events, b, 0))
	wantEvents(t, got, []Event{{Kind: EventAlloc, Seq: 7, Size: 100}, {Kind: EventAlloc, Seq: 9, Size: 300}})
	if h := r.Health(); h.UnknownEvents != 1 || h.Events != 2 || h.Truncated {
		t.Errorf("health %+v", h)
	}
}

// A writer may choose another encoding for a field than FieldSpecs names.
func TestEveryEncodingRoundTrips(t *testing.T) {
	events := trainingStream(3000, 9)
	for encoding := Encoding(0); encoding < encodingCount; encoding++ {
		b := newBlockEncoder()
		for f := range b.columns {
			b.columns[f].encoding = encoding
			// Slots come from earlier fields of the block, so these two cannot be predicted from them.
			if Field(f) <= FieldSize && encoding >= EncodingSame {
				b.columns[f].encoding = EncodingDelta
			}
		}
		b.reset()
		b.append(events)
		var d blockDecoder
		if err := d.open(b.finish(nil, 0)); err != nil {
			t.Fatal(err)
		}
		var got []Event
		for {
			var batch Batch
			if err := d.next(&batch, 700); err != nil {
				t.Fatalf("encoding %d: %v", encoding, err)
			}
			if batch.Len() == 0 {
				break
			}
			got = append(got, batch.Rows()...)
		}
		wantEvents(t, got, events)
	}
}
