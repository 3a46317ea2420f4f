package mutant

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// The framing of docs/format.md.
const (
	traceHead     = 16
	sectionHeader = 16

	kindInfo       = 1
	kindDictionary = 2
	kindEvents     = 3
	kindIndex      = 5
	kindEnd        = 6
	kindSymbols    = 9
)

// Section is a part of a trace.
type Section struct {
	Kind   uint32
	stored []byte // header and payload as they stand in the file
	packed bool
}

// Trace is a trace taken apart.
type Trace struct {
	Name     string
	Data     []byte
	Sections []Section
}

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	packer     = must(zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithSingleSegment(true),
		zstd.WithEncoderCRC(false)))
	unpacker = must(zstd.NewReader(nil, zstd.WithDecoderConcurrency(1)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ParseTrace takes a whole trace apart.
func ParseTrace(name string, data []byte) (*Trace, error) {
	t := &Trace{Name: name, Data: data}
	for rest := data[min(traceHead, len(data)):]; len(rest) > 0; {
		if len(rest) < sectionHeader {
			return nil, fmt.Errorf("%s: %d bytes of a section's header", name, len(rest))
		}
		size := sectionHeader + int(binary.LittleEndian.Uint32(rest[4:]))
		if size > len(rest) {
			return nil, fmt.Errorf("%s: a section of %d bytes, %d are left", name, size, len(rest))
		}
		t.Sections = append(t.Sections, Section{Kind: binary.LittleEndian.Uint32(rest), stored: rest[:size],
			packed: binary.LittleEndian.Uint32(rest[12:]) != 0})
		rest = rest[size:]
	}
	return t, nil
}

// payload returns what a section holds, unpacked.
func (s Section) payload() []byte {
	b := s.stored[sectionHeader:]
	if !s.packed {
		return b
	}
	return must(unpacker.DecodeAll(b, nil))
}

// pack makes a section with a right checksum.
func pack(kind uint32, payload []byte, packed bool) Section {
	s := Section{Kind: kind, packed: packed && len(payload) > 0, stored: make([]byte, sectionHeader)}
	body, raw := payload, 0
	if s.packed {
		body, raw = packer.EncodeAll(payload, nil), len(payload)
	}
	binary.LittleEndian.PutUint32(s.stored, kind)
	binary.LittleEndian.PutUint32(s.stored[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(s.stored[12:], uint32(raw))
	s.stored = append(s.stored, body...)
	s.repair()
	return s
}

// repair makes the checksum right.
func (s Section) repair() {
	sum := crc32.Update(0, castagnoli, s.stored[:8])
	sum = crc32.Update(sum, castagnoli, s.stored[12:16])
	binary.LittleEndian.PutUint32(s.stored[8:], crc32.Update(sum, castagnoli, s.stored[sectionHeader:]))
}

// What was done to a trace, as far as it decides what readers must make of it.
type Damage int

const (
	DamageBytes    Damage = iota // bytes of the file, checksums as they were: readers must see it
	DamageSections               // whole sections came, went or changed places: every checksum is right
	DamageContent                // what sections hold, checksums made right
)

// TraceMutant is a trace with damage.
type TraceMutant struct {
	Data   []byte
	Damage Damage
	How    string
	First  int // offset of the first byte that differs, -1 if none does
}

// Mutate damages a trace; parts of others may come into it.
func (t *Trace) Mutate(r *rand.Rand, others []*Trace) TraceMutant {
	var m TraceMutant
	switch choice := r.IntN(20); {
	case choice < 3:
		m.Damage = DamageBytes
		m.Data, m.How = Bytes(r, t.Data)
	case choice < 6:
		m.Damage = DamageSections
		m.Data, m.How = t.build(moveSections(r, slices.Clone(t.Sections), others))
	default:
		m.Damage = DamageContent
		list, how := slices.Clone(t.Sections), ""
		for n := 1 + r.IntN(2); n > 0 && len(list) > 0; n-- {
			i := pick(r, list)
			var did string
			list[i], did = list[i].mutate(r)
			how += fmt.Sprintf(" section %d (kind %d):%s", i, t.Sections[i].Kind, did)
		}
		m.Data, m.How = t.build(list, how)
	}
	m.How = t.Name + ":" + m.How
	m.First = firstDifference(t.Data, m.Data)
	return m
}

func (t *Trace) build(list []Section, how string) ([]byte, string) {
	data := bytes.Clone(t.Data[:min(traceHead, len(t.Data))])
	for _, s := range list {
		data = append(data, s.stored...)
	}
	return data, how
}

// pick prefers what is replayed.
func pick(r *rand.Rand, list []Section) int {
	i := r.IntN(len(list))
	for tries := 0; tries < 2 && list[i].Kind != kindEvents && list[i].Kind != kindDictionary; tries++ {
		i = r.IntN(len(list))
	}
	return i
}

// mutate damages a section and makes its checksum right.
func (s Section) mutate(r *rand.Rand) (Section, string) {
	if r.IntN(12) == 0 { // its header, or its bytes as they are stored: a frame that cannot be unpacked
		stored, how := Bytes(r, s.stored)
		if len(stored) < sectionHeader {
			return Section{Kind: s.Kind, stored: stored}, how
		}
		if r.IntN(2) == 0 {
			binary.LittleEndian.PutUint32(stored[4:], uint32(len(stored)-sectionHeader))
		}
		m := Section{Kind: s.Kind, stored: stored}
		m.repair()
		return m, " as stored:" + how
	}
	if len(s.stored) < sectionHeader {
		return s, " nothing"
	}
	payload, how := Bytes(r, s.payload())
	return pack(s.Kind, payload, s.packed && r.IntN(4) > 0), how
}

// moveSections doubles, drops, swaps and moves sections, and puts strange ones between them.
func moveSections(r *rand.Rand, list []Section, others []*Trace) ([]Section, string) {
	if len(list) == 0 {
		return list, ""
	}
	i, j := r.IntN(len(list)), r.IntN(len(list))
	switch r.IntN(5) {
	case 0:
		return slices.Insert(list, j, list[i]), fmt.Sprintf(" section %d (kind %d) again at %d", i, list[i].Kind, j)
	case 1:
		how := fmt.Sprintf(" without section %d (kind %d)", i, list[i].Kind)
		return slices.Delete(list, i, i+1), how
	case 2:
		list[i], list[j] = list[j], list[i]
		return list, fmt.Sprintf(" sections %d and %d (kinds %d and %d) swapped", i, j, list[j].Kind, list[i].Kind)
	case 3:
		s := list[i]
		return slices.Insert(slices.Delete(list, i, i+1), min(j, len(list)-1), s),
			fmt.Sprintf(" section %d (kind %d) moved to %d", i, s.Kind, j)
	}
	other := others[r.IntN(len(others))]
	if len(other.Sections) == 0 {
		return list, " nothing"
	}
	n := r.IntN(len(other.Sections))
	return slices.Insert(list, i, other.Sections[n]), fmt.Sprintf(" section %d of %s (kind %d) at %d", n, other.Name,
		other.Sections[n].Kind, i)
}

// SectionAt returns where the section begins that holds the byte at offset; the end of the last one for an offset
// behind it.
func (t *Trace) SectionAt(offset int) (start int, kind uint32) {
	start = traceHead
	for _, s := range t.Sections {
		if offset < start+len(s.stored) {
			return start, s.Kind
		}
		start += len(s.stored)
	}
	return start, 0
}

// EndAt returns where the end section begins, the length of the file without one.
func (t *Trace) EndAt() int {
	at := traceHead
	for _, s := range t.Sections {
		if s.Kind == kindEnd {
			return at
		}
		at += len(s.stored)
	}
	return len(t.Data)
}
