package trace

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"memtrace/internal/section"
)

// A trace whose sections were doubled, dropped or swapped as a whole was read as if nothing had happened, since each
// section's own checksum is right: events counted twice, names were missing, and the report was called complete.
func TestMovedSections(t *testing.T) {
	whole := encodeTrace(t, trainingStream(900, 6), 200)
	var sections [][]byte
	for rest := whole[section.HeadSize:]; len(rest) > 0; {
		size := section.HeaderSize + int(section.ParseHeader(rest).Length)
		sections, rest = append(sections, rest[:size]), rest[size:]
	}
	last := len(sections) - 1 // the end
	for what, list := range map[string][][]byte{
		"as written":      sections,
		"doubled":         slices.Insert(slices.Clone(sections), 2, sections[1]),
		"dropped":         slices.Delete(slices.Clone(sections), 0, 1),
		"swapped":         append([][]byte{sections[1], sections[0]}, sections[2:]...),
		"before the end":  append(slices.Clone(sections[:last-1]), sections[last]),
		"one for another": append([][]byte{sections[1], sections[1]}, sections[2:]...),
		"an unknown one": slices.Insert(slices.Clone(sections), 1,
			withSection(77, []byte("x"), 0)[section.HeadSize:]),
		"behind the end": append(slices.Clone(sections), withSection(section.Symbols, []byte{0, 0},
			0)[section.HeadSize:]),
		"end twice, at end": append(slices.Clone(sections), sections[last]),
	} {
		file := slices.Concat(append([][]byte{whole[:section.HeadSize]}, list...)...)
		events, r := readAll(t, file)
		unchanged := what == "as written" || strings.Contains(what, "behind") || strings.Contains(what, "at end")
		if h := r.Health(); h.Truncated || (h.Altered == "") != unchanged {
			t.Errorf("%s: %+v", what, h)
		}
		// The copy's own sections are in order: it must record that those of the original were not, and its events must
		// be flagged as there.
		copied, c := readAll(t, copyOf(t, file, verbatim{}))
		if c.Health().Altered != r.Health().Altered || c.Health().LateEvents != r.Health().LateEvents {
			t.Errorf("%s: %+v, copied %+v", what, r.Health(), c.Health())
		}
		wantEvents(t, copied, events)
	}
}

// Repeated events are counted. Lost events have the number of another event, and a file that is continued holds nothing
// about its first half.
func TestRepeatedEvents(t *testing.T) {
	for text, want := range map[string]uint64{
		"mark seq=1\nmark seq=2\nmark seq=2\nflush watermark=3\nmark seq=1\nmark seq=3": 2,
		"mark seq=1\nlost seq=1 count=3\nmark seq=2":                                    0,
		"mark seq=1\nmark seq=3\nflush watermark=4\nmark seq=2 flags=1":                 0,
		"mark seq=1\nmark seq=2\nflush\nmark seq=1\nmark seq=2":                         2,
	} {
		_, r := readAll(t, encode(t, text))
		if h := r.Health(); h.Repeated != want || h.Altered != "" {
			t.Errorf("%q: %+v, want %d repeated", text, h, want)
		}
	}
	events := trainingStream(900, 6)
	var file bytes.Buffer
	w, err := NewWriter(&file, WriterOptions{})
	if err != nil || w.WriteEvents(events[:100]) != nil || w.Flush(101) != nil {
		t.Fatal(err)
	}
	w, err = NewWriter(&file, WriterOptions{Append: int64(file.Len()), Watermark: 101})
	if err != nil || w.WriteEvents(events[100:]) != nil || w.Close(End{}) != nil {
		t.Fatal(err)
	}
	if _, r := readAll(t, file.Bytes()); r.Health().Altered != "" {
		t.Errorf("%+v", r.Health())
	}
}
