package trace

import (
	"encoding/binary"
	"hash/crc32"
)

// SectionKind says what a section holds. Numbers are append-only; readers skip kinds they do not know.
type SectionKind uint32

// The section kinds.
const (
	SectionInfo       SectionKind = 1  // key and value pairs
	SectionDictionary SectionKind = 2  // strings, stacks, modules, threads, devices
	SectionEvents     SectionKind = 3  // one event block
	SectionSamples    SectionKind = 4  // reserved: device samples
	SectionIndex      SectionKind = 5  // where event blocks stand, written when the run ended cleanly
	SectionEnd        SectionKind = 6  // closes a run that ended cleanly
	SectionClock      SectionKind = 7  // reserved: clock corrections
	SectionOOM        SectionKind = 8  // the recorder's report of running out of memory
	SectionSymbols    SectionKind = 9  // what code addresses are called; the only kind that may stand behind the end
	SectionParity     SectionKind = 10 // restores what a little damage took from the sections before it
)

var sectionNames = [...]string{"", "info", "dictionary", "events", "samples", "index", "end", "clock", "oom", "symbols", "parity"}

// String returns the kind's name, or "unknown".
func (k SectionKind) String() string {
	if k > 0 && int(k) < len(sectionNames) {
		return sectionNames[k]
	}
	return "unknown"
}

// A section is a 16-byte header and a payload:
//
//	0  u32 kind
//	4  u32 length of the payload as stored
//	8  u32 CRC-32C over kind, length, raw length and payload
//	12 u32 raw length if the payload is a zstd frame, 0 if it is stored plain
const sectionHeaderSize = 16

type sectionHeader struct {
	kind   SectionKind
	length uint32
	crc    uint32
	raw    uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func parseSectionHeader(b []byte) sectionHeader {
	return sectionHeader{
		kind:   SectionKind(binary.LittleEndian.Uint32(b)),
		length: binary.LittleEndian.Uint32(b[4:]),
		crc:    binary.LittleEndian.Uint32(b[8:]),
		raw:    binary.LittleEndian.Uint32(b[12:]),
	}
}

// put writes the header, with the checksum of the given payload, into the first 16 bytes of b.
func (h sectionHeader) put(b []byte, payload []byte) {
	binary.LittleEndian.PutUint32(b, uint32(h.kind))
	binary.LittleEndian.PutUint32(b[4:], h.length)
	binary.LittleEndian.PutUint32(b[12:], h.raw)
	binary.LittleEndian.PutUint32(b[8:], crc32.Update(h.checksumSeed(), castagnoli, payload))
}

// checksumSeed returns the checksum of the header's own fields, to be continued over the payload.
func (h sectionHeader) checksumSeed() uint32 {
	var fields [12]byte
	binary.LittleEndian.PutUint32(fields[0:], uint32(h.kind))
	binary.LittleEndian.PutUint32(fields[4:], h.length)
	binary.LittleEndian.PutUint32(fields[8:], h.raw)
	return crc32.Checksum(fields[:], castagnoli)
}
