package trace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"memtrace/internal/section"
)

// sectionMap holds where the sections of a whole trace begin and how many events precede each.
type sectionMap struct{ starts, events []int }

func mapSections(t testing.TB, file []byte) (m sectionMap) {
	t.Helper()
	at := section.HeadSize
	for {
		before, _ := readAll(t, file[:at])
		m.starts, m.events = append(m.starts, at), append(m.events, len(before))
		if at == len(file) {
			return m
		}
		at += section.HeaderSize + int(section.ParseHeader(file[at:]).Length)
		if at > len(file) {
			t.Fatalf("a section ends at %d, the file at %d", at, len(file))
		}
	}
}

// upTo returns how many events the whole sections within the first n bytes hold, and where the last of them ends.
func (m sectionMap) upTo(n int) (events, end int) {
	for i, at := range m.starts {
		if at <= n {
			events, end = m.events[i], at
		}
	}
	return events, end
}

// mixedTrace has every section kind and several blocks, and is small enough to try every byte.
func mixedTrace(t testing.TB) []byte {
	t.Helper()
	var text strings.Builder
	text.WriteString(strings.TrimSuffix(everyLine(), everyLine()[strings.LastIndex(everyLine(), "end reason"):]))
	body := dump(t, encodeTrace(t, trainingStream(150, 5), 40))
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "trace ") {
			text.WriteString(line)
		}
	}
	return encode(t, text.String())
}

func TestCutAtEveryByte(t *testing.T) {
	file := mixedTrace(t)
	all, _ := readAll(t, file)
	sections := mapSections(t, file)
	for n := range file {
		r, err := NewReader(bytes.NewReader(file[:n]), int64(n))
		if n < section.HeadSize {
			if !errors.Is(err, ErrEmpty) || r != nil {
				t.Fatalf("cut at %d: reader %v, error %v", n, r, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		got, h := drain(t, r)
		want, wantEnd := sections.upTo(n)
		if len(got) != want {
			t.Fatalf("cut at %d: %d events, want %d", n, len(got), want)
		}
		wantEvents(t, got, all[:len(got)])
		if h.Truncated != (n != wantEnd) || h.Bytes != int64(wantEnd) || h.Truncated &&
			(h.TruncatedAt != int64(wantEnd) || h.Reason == "") {
			t.Fatalf("cut at %d, last whole section ends at %d: %+v", n, wantEnd, h)
		}
		if _, ok := r.End(); ok {
			t.Fatalf("cut at %d: the end section was read", n)
		}
	}
}

func drain(t testing.TB, r *Reader) ([]Event, Health) {
	t.Helper()
	var events []Event
	for {
		batch, err := r.ReadBatch()
		if err == io.EOF {
			if _, again := r.ReadBatch(); again != io.EOF {
				t.Fatalf("after io.EOF: %v", again)
			}
			return events, r.Health()
		}
		if err != nil || len(batch) == 0 {
			t.Fatalf("batch of %d, error %v", len(batch), err)
		}
		events = append(events, batch...)
	}
}

// A flipped bit costs nothing: all that can be restored is, and that is reported.
func TestFlipEveryBit(t *testing.T) {
	file := mixedTrace(t)
	all, whole := readAll(t, file)
	sections := mapSections(t, file)
	last := sections.starts[len(sections.starts)-2] // the end
	step := 1
	if testing.Short() {
		step = 7
	}
	for bit := 0; bit < len(file)*8; bit += step {
		at := bit / 8
		file[at] ^= 1 << (bit % 8)
		r, err := NewReader(bytes.NewReader(file), int64(len(file)))
		switch {
		case at < section.HeadSize:
			if err == nil || r != nil || !errors.Is(err, ErrNotTrace) && !errors.Is(err, ErrVersion) {
				t.Fatalf("bit %d of the head: reader %v, error %v", bit, r, err)
			}
		case err != nil:
			t.Fatalf("bit %d: %v", bit, err)
		default:
			got, h := drain(t, r)
			if len(got) != len(all) || h.Truncated != (at >= last) || h.Torn.Stretches != 0 ||
				(h.Restored.Stretches == 1) != (at < last) || h.Gaps != whole.Health().Gaps {
				t.Fatalf("byte %d: %d events of %d, %+v", at, len(got), len(all), h)
			}
			wantEvents(t, got, all)
		}
		file[at] ^= 1 << (bit % 8)
	}
}

// A hundred bad bytes cost no event, wherever they are.
//
// A trace of 14,953 events with 100 zero bytes in the middle returned none of them: they were in one block.
func TestHundredBadBytes(t *testing.T) {
	events := trainingStream(15000, 3)
	file := encodeTrace(t, events, 4000)
	sections := mapSections(t, file)
	last := sections.starts[len(sections.starts)-2]
	const parityBytes = section.HeaderSize + 16 + 128 // of one of the two copies of a parity section
	noise := rand.New(rand.NewPCG(1, 2))
	places := []int{section.HeadSize, last - 100}
	for _, start := range sections.starts {
		places = append(places, start-100, start-50, start-1, start)
	}
	for range 100 {
		places = append(places, section.HeadSize+noise.IntN(last-section.HeadSize-100))
	}
	for _, at := range places {
		if at < section.HeadSize || at+100 > last {
			continue
		}
		damaged := bytes.Clone(file)
		for i := range 100 {
			damaged[at+i] = byte(noise.Uint32())
		}
		got, r := readAll(t, damaged)
		if h := r.Health(); len(got) != len(events) || h.Truncated || h.Torn.Stretches+h.Restored.Stretches == 0 ||
			h.Torn.Bytes > 2*parityBytes || h.Altered != "" {
			t.Fatalf("100 bytes at %d of %d: %d of %d events, %+v", at, len(file), len(got), len(events), h)
		}
		wantEvents(t, got, events)
	}
}

// Larger damage costs the sections that it is in. What follows is read, and what is missing is reported at its place.
func TestLargeDamageIsPassedOver(t *testing.T) {
	events := trainingStream(15000, 3)
	file := encodeTrace(t, events, 1000)
	step := 997
	if testing.Short() {
		step *= 7
	}
	for at := section.HeadSize; at+400 < len(file)-400; at += step {
		damaged := bytes.Clone(file)
		clear(damaged[at : at+400])
		got, r := readAll(t, damaged)
		h := r.Health()
		// The few bytes of it that reach into a section before or after are restored there.
		covered := h.Torn.At <= int64(at) && h.Torn.At+h.Torn.Bytes >= int64(at)+400 || h.Restored.Stretches > 0
		if h.Torn.Stretches != 1 || !covered || h.Truncated || h.Torn.Reason == "" {
			t.Fatalf("400 bytes at %d: %+v", at, h)
		}
		if len(got) < len(events)-2*1000 {
			t.Fatalf("400 bytes at %d: %d events of %d", at, len(got), len(events))
		}
		var reported, announcements uint64
		for i := range got {
			if got[i].Kind == EventLost {
				reported += got[i].Count
				announcements++
			}
		}
		records, _, _ := r.Lost()
		if missing := uint64(len(events)) - (h.Events - announcements); reported != missing ||
			reported != h.Torn.Records ||
			records != reported || h.Gaps > reported {
			t.Fatalf("400 bytes at %d: %d events missing, %d told of, %d lost, %+v", at, missing, reported, records, h)
		}
		wantSameAhead(t, damaged)
	}
}

// A large block of which much is gone costs itself: the search for what could restore it has a budget of its own.
func TestDamageInALargeBlock(t *testing.T) {
	file := encodeTrace(t, trainingStream(2*MaxBlockEvents, 3), MaxBlockEvents)
	noise := rand.New(rand.NewPCG(3, 4))
	for i := range 1000 {
		file[50000+i] = byte(noise.Uint32())
	}
	got, r := readAll(t, file)
	if h := r.Health(); h.Truncated || h.Torn.Stretches != 1 || len(got) != MaxBlockEvents+1 ||
		h.Torn.Records != MaxBlockEvents {
		t.Errorf("%d events, %+v", len(got), h)
	}
}

// What can only be read in order is not restored, but reading goes on after the damage.
func TestDamageInAPipe(t *testing.T) {
	events := trainingStream(3000, 3)
	file := encodeTrace(t, events, 1000)
	file[len(file)/2] ^= 1
	r, err := NewReader(iotest.OneByteReader(bytes.NewReader(file)), -1)
	if err != nil {
		t.Fatal(err)
	}
	if got, h := drain(t, r); h.Torn.Stretches != 1 || len(got) != 2001 || h.Torn.Records != 1000 {
		t.Errorf("%d events, %+v", len(got), h)
	}
}

func TestSizeUnknownReadsTheSame(t *testing.T) {
	file := mixedTrace(t)
	all, _ := readAll(t, file)
	for _, n := range []int{section.HeadSize, len(file) / 3, len(file) / 2, len(file) - 1, len(file)} {
		known, err := NewReader(bytes.NewReader(file[:n]), int64(n))
		if err != nil {
			t.Fatal(err)
		}
		unknown, err := NewReader(iotest.OneByteReader(bytes.NewReader(file[:n])), -1)
		if err != nil {
			t.Fatal(err)
		}
		a, ha := drain(t, known)
		b, hb := drain(t, unknown)
		wantEvents(t, a, all[:len(a)])
		wantEvents(t, b, a)
		if ha.TruncatedAt != hb.TruncatedAt || ha.Truncated != hb.Truncated || ha.Bytes != hb.Bytes {
			t.Errorf("cut at %d: %+v with the size known, %+v without", n, ha, hb)
		}
	}
}

func TestNoTrace(t *testing.T) {
	version := func(v uint32) []byte {
		head := fileHead()
		binary.LittleEndian.PutUint32(head[8:], v)
		return head
	}
	cases := []struct {
		name string
		file []byte
		want error
		text string
	}{
		{"empty", nil, ErrEmpty, ""},
		{"half a head", fileHead()[:11], ErrEmpty, ""},
		{"short file of another kind", []byte("ELF"), ErrNotTrace, ""},
		{"another kind", bytes.Repeat([]byte("x"), 100), ErrNotTrace, ""},
		{"newer version", version(FormatVersion + 1), ErrVersion, "has version 2, this memtrace reads 1 to 1"},
		{"version 0", version(0), ErrVersion, "has version 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := NewReader(bytes.NewReader(c.file), int64(len(c.file)))
			if r != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("reader %v, error %v, want %v with %q", r, err, c.want, c.text)
			}
		})
	}
}

func TestReadErrorIsNotDamage(t *testing.T) {
	file := mixedTrace(t)
	broken := errors.New("cable pulled")
	for _, n := range []int{3, section.HeadSize, section.HeadSize + 5, section.HeadSize + section.HeaderSize + 2,
		len(file) / 2} {
		r, err := NewReader(io.MultiReader(bytes.NewReader(file[:n]), iotest.ErrReader(broken)), -1)
		for err == nil {
			_, err = r.ReadBatch()
		}
		if !errors.Is(err, broken) {
			t.Errorf("reading fails after %d bytes: %v", n, err)
		}
		if r != nil && r.Health().Truncated {
			t.Errorf("reading fails after %d bytes: called truncated", n)
		}
	}
}

// withSection returns a file of one section with a right checksum.
func withSection(kind section.Kind, payload []byte, raw uint32) []byte {
	file := append(fileHead(), make([]byte, section.HeaderSize)...)
	section.Header{Kind: kind, Length: uint32(len(payload)), Raw: raw}.Put(file[section.HeadSize:], payload)
	return append(file, payload...)
}

// oneColumn returns a block of count alloc events that have only the given field, whose column is as given.
func oneColumn(count uint64, f Field, encoding Encoding, column []byte) []byte {
	b := binary.AppendUvarint([]byte{0}, count)
	b = append(b, 1, byte(EventAlloc))
	b = binary.AppendUvarint(b, 1<<f)
	b = binary.AppendUvarint(b, count)
	b = append(b, make([]byte, count)...)
	b = append(b, byte(encoding))
	b = binary.AppendUvarint(b, uint64(len(column)))
	return append(b, column...)
}

// Sections that are whole and have the right checksum, but whose content no writer would produce.
func TestInconsistentContentEndsReading(t *testing.T) {
	enc, err := zstd.NewWriter(nil, zstd.WithSingleSegment(true))
	if err != nil {
		t.Fatal(err)
	}
	bomb := enc.EncodeAll(make([]byte, section.MaxBytes), nil)
	two := binary.AppendUvarint(nil, 2)
	cases := []struct {
		name    string
		kind    section.Kind
		payload []byte
		raw     uint32
		reason  string
	}{
		{"no events", section.Events, []byte{0, 0, 0}, 0, "0 events of 0 kinds"},
		{"too many events", section.Events, append([]byte{0}, 0x81, 0x80, 0x04, 1, 1, 1), 0, "65537 events"},
		{"kind column short", section.Events, []byte{0, 3, 1, 1, 1, 2, 0, 0}, 0, "kind column"},
		{"kind not listed", section.Events, []byte{0, 1, 1, 1, 0, 1, 1}, 0, "kind 1 of 1"},
		{"column short", section.Events, oneColumn(2, FieldSize, EncodingPlain, []byte{1}), 0, "field size"},
		{"column past the end", section.Events, []byte{0, 1, 1, 1, 1, 1, 0, 1, 9, 0}, 0, "past the end"},
		{"unknown encoding", section.Events, oneColumn(1, FieldSize, 99, []byte{1}), 0, "field size"},
		{"value too wide", section.Events, oneColumn(1, FieldDevice, EncodingPlain, []byte{0x80, 0x80, 0x08}), 0,
			"device: a value is out of range"},
		{"table index unknown", section.Events, oneColumn(1, FieldAddr, EncodingTable, []byte{1}), 0, "field addr"},
		{"run of nothing", section.Events, oneColumn(1, FieldTag, EncodingRun, []byte{0, 1}), 0, "field tag"},
		{"predicted column short", section.Events, oneColumn(3, FieldAPI, EncodingSame, two), 0, "field api"},
		{"stack of many frames", section.Dictionary, []byte{2, 6, 1, 0xff, 0xff, 0xff, 0x0f, 0}, 0, "dictionary"},
		{"Python stack of many frames", section.Dictionary, []byte{6, 6, 1, 0, 0xff, 0xff, 0x0f, 0}, 0, "dictionary"},
		{"Python frame short", section.Dictionary, []byte{6, 6, 1, 0, 2, 1, 1, 1}, 0, "dictionary"},
		{"Python frame's offset too wide", section.Dictionary, []byte{6, 10, 1, 0, 1, 1, 0x80, 0x80, 0x80, 0x80, 0x20,
			0}, 0, "dictionary"},
		{"stack end too wide", section.Dictionary, []byte{2, 5, 1, 1, 2, 0x80, 0x02}, 0, "dictionary"},
		{"line table past its body", section.Dictionary, []byte{7, 8, 1, 0, 0, 0, 0, 0, 0, 9}, 0, "dictionary"},
		{"line table too large", section.Dictionary, append([]byte{7, 10, 1, 0, 0, 0, 0, 0, 0}, 0x81, 0x80, 0x40), 0,
			"dictionary"},
		{"first line too wide", section.Dictionary, []byte{7, 12, 1, 0x80, 0x80, 0x80, 0x80, 0x20, 0, 0, 0, 0, 0, 0}, 0,
			"dictionary"},
		{"symbol texts past the end", section.Symbols, []byte{9, 1, 'x'}, 0, "symbols"},
		{"symbol text unknown", section.Symbols, []byte{1, 1, 'x', 1, 0, 2, 1, 2, 0, 0, 0}, 0, "symbols"},
		{"symbol without frames", section.Symbols, []byte{0, 1, 0, 2, 0}, 0, "symbols"},
		{"symbol of many frames", section.Symbols, append([]byte{0, 1, 0, 2, 0x81, 0x02}, make([]byte, 4*257)...), 0,
			"symbols"},
		{"symbol starts below 0", section.Symbols, []byte{0, 1, 0, 2, 1, 0, 0, 0, 3}, 0, "symbols"},
		{"fewer symbols than said", section.Symbols, []byte{0, 2, 0, 2, 1, 0, 0, 0, 1}, 0, "symbols"},
		{"string past its body", section.Dictionary, []byte{1, 3, 1, 9, 'x'}, 0, "dictionary"},
		{"entry past the end", section.Dictionary, []byte{1, 9, 1}, 0, "dictionary"},
		{"info past the end", section.Info, []byte{2, 1, 'a', 1, 'b', 5, 'c'}, 0, "info"},
		{"end too short", section.End, []byte{0, 0}, 0, "end"},
		{"no zstd", section.Events, []byte("not a zstd frame"), 400, "events section"},
		{"raw size differs", section.Dictionary, enc.EncodeAll(make([]byte, 1000), nil), 999, "impossible size"},
		{"raw size beyond the ratio", section.Dictionary, bomb, section.MaxBytes, "impossible size"},
		{"raw size beyond the limit", section.Events, bomb, section.MaxBytes + 1, "impossible size"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			events, r := readAll(t, withSection(c.kind, c.payload, c.raw))
			wantSameAhead(t, withSection(c.kind, c.payload, c.raw))
			if h := r.Health(); !h.Truncated || h.TruncatedAt != section.HeadSize ||
				!strings.Contains(h.Reason, c.reason) {
				t.Errorf("%d events, health %+v, want the reason %q", len(events), h, c.reason)
			}
		})
	}
}

func TestTrailingBytesAreCounted(t *testing.T) {
	file := append(mixedTrace(t), "more"...)
	for size, want := range map[int64]int64{int64(len(file)): 4, -1: -1} {
		r, err := NewReader(bytes.NewReader(file), size)
		if err != nil {
			t.Fatal(err)
		}
		if _, h := drain(t, r); h.Trailing != want || h.Truncated || h.Epilogue == "" {
			t.Errorf("size %d: %+v, want %d trailing", size, h, want)
		}
	}
}
