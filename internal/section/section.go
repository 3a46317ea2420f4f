// Package section reads and writes what a trace file consists of: sections with kind, length and checksum, whose
// contents it does not interpret. It passes over damage, and restores what parity sections can restore. SeqSet keeps
// sets of order numbers.
package section

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Kind is what a section holds. Numbers are append-only; readers skip kinds they do not know.
type Kind uint32

// The section kinds.
const (
	Info       Kind = 1  // key and value pairs
	Dictionary Kind = 2  // strings, stacks, modules, threads, devices
	Events     Kind = 3  // one event block
	Samples    Kind = 4  // reserved: device samples
	Index      Kind = 5  // offsets of event blocks, written when the run ended cleanly
	End        Kind = 6  // closes a run that ended cleanly
	Clock      Kind = 7  // reserved: clock corrections
	OOM        Kind = 8  // the recorder's report of running out of memory
	Symbols    Kind = 9  // names of code addresses; the only kind that may follow the end
	Parity     Kind = 10 // restores what a little damage took from the sections before it
	Keyframe   Kind = 11 // the state of a replay, behind the end
)

var names = [...]string{"", "info", "dictionary", "events", "samples", "index", "end", "clock", "oom", "symbols",
	"parity", "keyframe"}

// String returns the kind's name, or "unknown".
func (k Kind) String() string {
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

// HeaderSize is the size of a section's header, which precedes the payload:
//
//	0  u32 kind
//	4  u32 length of the payload as stored
//	8  u32 CRC-32C over kind, length, raw length and payload
//	12 u32 raw length if the payload is a zstd frame, 0 if it is stored plain
const HeaderSize = 16

// MaxBytes bounds a section's payload, as stored and uncompressed.
const MaxBytes = 16 << 20

// HeadSize is how many bytes of a file precede its first section.
const HeadSize = 16

// Header precedes a section's payload.
type Header struct {
	Kind   Kind
	Length uint32
	crc    uint32
	Raw    uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ParseHeader reads the first HeaderSize bytes of a section.
func ParseHeader(b []byte) Header {
	return Header{
		Kind:   Kind(binary.LittleEndian.Uint32(b)),
		Length: binary.LittleEndian.Uint32(b[4:]),
		crc:    binary.LittleEndian.Uint32(b[8:]),
		Raw:    binary.LittleEndian.Uint32(b[12:]),
	}
}

// Put writes the header, with the checksum of the given payload, into the first 16 bytes of b.
func (h Header) Put(b []byte, payload []byte) {
	binary.LittleEndian.PutUint32(b, uint32(h.Kind))
	binary.LittleEndian.PutUint32(b[4:], h.Length)
	binary.LittleEndian.PutUint32(b[12:], h.Raw)
	binary.LittleEndian.PutUint32(b[8:], crc32.Update(h.checksumSeed(), castagnoli, payload))
}

// checksumSeed returns the checksum of the header's own fields, to be continued over the payload.
func (h Header) checksumSeed() uint32 {
	var fields [12]byte
	binary.LittleEndian.PutUint32(fields[0:], uint32(h.Kind))
	binary.LittleEndian.PutUint32(fields[4:], h.Length)
	binary.LittleEndian.PutUint32(fields[8:], h.Raw)
	return crc32.Checksum(fields[:], castagnoli)
}

// Chain is a checksum over the checksums of sections in file order. Each section's own checksum covers its bytes; this
// covers that all are there, once, and in their places. The end section holds that of the sections before it.
type Chain struct {
	Sections uint64
	Sum      uint32
}

// add extends the chain by the section with the given checksum.
func (c *Chain) add(crc uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], crc)
	c.Sum = crc32.Update(c.Sum, castagnoli, b[:])
	c.Sections++
}

// Differs returns what is wrong with sections that should be want, or "".
func (c *Chain) Differs(want Chain) string {
	switch {
	// the end of a file that was continued, or of an older recorder, has none
	case want.Sections == 0 || *c == want:
		return ""
	case c.Sections != want.Sections:
		return fmt.Sprintf("%d sections stand before the end, %d were written", c.Sections, want.Sections)
	}
	return "the sections before the end are not those that were written, or not in their order"
}
