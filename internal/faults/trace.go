package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"memtrace/internal/section"
)

// Section is a part of a trace as it is in the file, header included.
type Section []byte

// Trace is a trace taken apart.
type Trace struct {
	Data     []byte
	Sections []Section
	Rest     []byte // what follows the last whole section
}

const maxUnpacked = 1 << 22 // of a section that is to be damaged; a larger one is damaged as it is stored

var (
	packer = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true),
		zstd.WithEncoderCRC(false)))
	unpacker = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Parse splits any bytes by the lengths of sections; checksums are not verified.
func Parse(data []byte) *Trace {
	t := &Trace{Data: data, Rest: data[min(section.HeadSize, len(data)):]}
	for len(t.Rest) >= section.HeaderSize {
		size := section.HeaderSize + int64(section.ParseHeader(t.Rest).Length)
		if size > int64(len(t.Rest)) {
			break
		}
		t.Sections, t.Rest = append(t.Sections, t.Rest[:size:size]), t.Rest[size:]
	}
	return t
}

func (s Section) header() section.Header { return section.ParseHeader(s) }

// repaired returns the section with a right checksum.
func (s Section) repaired() Section {
	s = bytes.Clone(s)
	s.header().Put(s, s[section.HeaderSize:])
	return s
}

// payload returns what a section holds, unpacked if it can be.
func (s Section) payload() []byte {
	if s.header().Raw == 0 {
		return s[section.HeaderSize:]
	}
	b, err := unpacker.DecodeAll(s[section.HeaderSize:], nil)
	if err != nil {
		return s[section.HeaderSize:]
	}
	return b
}

// pack makes a section with a right checksum.
func pack(kind section.Kind, payload []byte, packed bool) Section {
	h, body := section.Header{Kind: kind}, payload
	if packed && len(payload) > 0 {
		body, h.Raw = packer.EncodeAll(payload, nil), uint32(len(payload))
	}
	h.Length = uint32(len(body))
	s := make(Section, section.HeaderSize, section.HeaderSize+len(body))
	h.Put(s, body)
	return append(s, body...)
}

// Repaired returns the trace with right checksums.
func (t *Trace) Repaired() []byte {
	list := make([]Section, len(t.Sections))
	for i, s := range t.Sections {
		list[i] = s.repaired()
	}
	return t.build(list)
}

// Kind is what was done to a trace, as far as it decides what readers must make of it.
type Kind int

const (
	Bytes    Kind = iota // bytes of the file, checksums as they were: readers must see it
	Sections             // whole sections came, went or changed places: every checksum is as it was
	Content              // what sections hold, checksums made right
)

// Damaged is a trace with damage.
type Damaged struct {
	Data  []byte
	Kind  Kind
	How   string
	First int // offset of the first byte that differs, -1 if none does
}

// Damage puts faults into a trace, none if nothing was chosen; parts of others may come into it.
func (t *Trace) Damage(c *Choices, others []*Trace) Damaged {
	if len(*c) == 0 {
		return Damaged{Data: t.Data, Kind: Content, How: "as it was", First: -1}
	}
	var h Damaged
	switch choice := c.IntN(20); {
	case choice < 3 || len(t.Sections) == 0:
		h.Data, h.How = c.Bytes(t.Data)
	case choice < 6:
		h.Kind = Sections
		var list []Section
		list, h.How = c.moveSections(slices.Clone(t.Sections), others)
		h.Data = t.build(list)
	default:
		h.Kind = Content
		list := slices.Clone(t.Sections)
		for n := 1 + c.IntN(2); n > 0; n-- {
			i := c.pick(list)
			var did string
			h.How += fmt.Sprintf(" section %d (%s):", i, t.Sections[i].header().Kind)
			list[i], did = c.section(list[i])
			h.How += did
		}
		h.Data = t.build(list)
	}
	h.First = firstDifference(t.Data, h.Data)
	return h
}

func (t *Trace) build(list []Section) []byte {
	data := bytes.Clone(t.Data[:min(section.HeadSize, len(t.Data))])
	for _, s := range list {
		data = append(data, s...)
	}
	return append(data, t.Rest...)
}

// pick prefers what is replayed.
func (c *Choices) pick(list []Section) int {
	i := c.IntN(len(list))
	for range 2 {
		if len(list[i]) < section.HeaderSize {
			break
		}
		if kind := list[i].header().Kind; kind == section.Events || kind == section.Dictionary {
			break
		}
		i = c.IntN(len(list))
	}
	return i
}

// section damages a section and makes its checksum right.
func (c *Choices) section(s Section) (Section, string) {
	if len(s) < section.HeaderSize {
		return s, " nothing"
	}
	kind, packed := s.header().Kind, s.header().Raw != 0
	if c.IntN(12) == 11 { // its header, or its stored bytes: a frame that cannot be unpacked
		stored, how := c.Bytes(s)
		if len(stored) < section.HeaderSize {
			return stored, how
		}
		if c.IntN(2) == 0 {
			binary.LittleEndian.PutUint32(stored[4:], uint32(len(stored)-section.HeaderSize))
		}
		return Section(stored).repaired(), " as stored:" + how
	}
	payload, how := c.Bytes(s.payload())
	return pack(kind, payload, packed && c.IntN(4) < 3), how
}

// moveSections doubles, drops, swaps and moves sections, and puts strange ones between them.
func (c *Choices) moveSections(list []Section, others []*Trace) ([]Section, string) {
	i, j := c.IntN(len(list)), c.IntN(len(list))
	switch c.IntN(5) {
	case 0:
		return slices.Insert(list, j, list[i]), fmt.Sprintf(" section %d again at %d", i, j)
	case 1:
		return slices.Delete(list, i, i+1), fmt.Sprintf(" without section %d", i)
	case 2:
		list[i], list[j] = list[j], list[i]
		return list, fmt.Sprintf(" sections %d and %d swapped", i, j)
	case 3:
		s := list[i]
		return slices.Insert(slices.Delete(list, i, i+1), min(j, len(list)-1), s),
			fmt.Sprintf(" section %d moved to %d", i, j)
	}
	o := c.IntN(len(others))
	if len(others) == 0 || len(others[o].Sections) == 0 {
		return list, " nothing"
	}
	n := c.IntN(len(others[o].Sections))
	return slices.Insert(list, i, others[o].Sections[n]), fmt.Sprintf(" section %d of trace %d at %d", n, o, i)
}

// SectionAt returns where the section begins that holds the byte at offset; the end of the last one for an offset after
// it.
func (t *Trace) SectionAt(offset int) (start int) {
	start = section.HeadSize
	for _, s := range t.Sections {
		if offset < start+len(s) {
			return start
		}
		start += len(s)
	}
	return start
}

// EndAt returns where the end section begins, the length of the file without one.
func (t *Trace) EndAt() int {
	at := section.HeadSize
	for _, s := range t.Sections {
		if s.header().Kind == section.End {
			return at
		}
		at += len(s)
	}
	return len(t.Data)
}

// firstDifference returns the offset of the first byte in which a and b differ, -1 if they are the same.
func firstDifference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	if len(a) == len(b) {
		return -1
	}
	return min(len(a), len(b))
}
