package section

import (
	"crypto/subtle"
	"encoding/binary"
	"hash/crc32"
)

// A parity section restores what damage of up to 128 bytes in a row took from the sections before it:
//
//	0   u64 offset of the first of them
//	8   u64 their bytes, headers included; the last of them ends where the parity section begins, or its first copy
//	16  128 bytes: byte i is the exclusive or of all their bytes whose offset in the file is i modulo 128
//
// It is written twice in a row, each copy longer than the damage, so one of them is whole where the damage is at its
// border. Damage in both of them costs nothing but themselves.

// parityBytes is the longest damage that can be restored.
const parityBytes = 128

const (
	ParitySize = HeaderSize + 16 + parityBytes
	// parityGroup is the least number of bytes that a parity section covers, except the last one.
	parityGroup = 8 << 10
)

// parity is the content of a parity section.
type parity struct {
	start, length int64
	sum           [parityBytes]byte
}

// add takes in the bytes that follow those before.
func (p *parity) add(b []byte) {
	at := int((p.start + p.length) % parityBytes)
	p.length += int64(len(b))
	if at > 0 {
		n := subtle.XORBytes(p.sum[at:], p.sum[at:], b)
		b = b[n:]
	}
	for len(b) > 0 {
		n := subtle.XORBytes(p.sum[:], p.sum[:], b)
		b = b[n:]
	}
}

// section returns the parity section, header included.
func (p *parity) section() []byte {
	b := make([]byte, ParitySize)
	payload := b[HeaderSize:]
	binary.LittleEndian.PutUint64(payload, uint64(p.start))
	binary.LittleEndian.PutUint64(payload[8:], uint64(p.length))
	copy(payload[16:], p.sum[:])
	Header{Kind: Parity, Length: uint32(len(payload))}.Put(b, payload)
	return b
}

// parseParity reads a parity section at the start of b; ok=false if there is none.
func parseParity(b []byte) (p parity, ok bool) {
	if len(b) < ParitySize {
		return p, false
	}
	h, payload := ParseHeader(b), b[HeaderSize:ParitySize]
	if h.Kind != Parity || int(h.Length) != len(payload) ||
		crc32.Update(h.checksumSeed(), castagnoli, payload) != h.crc {
		return p, false
	}
	p.start, p.length = int64(binary.LittleEndian.Uint64(payload)), int64(binary.LittleEndian.Uint64(payload[8:]))
	copy(p.sum[:], payload[16:])
	return p, p.start >= HeadSize && p.length > 0 && p.start+p.length > p.start
}
