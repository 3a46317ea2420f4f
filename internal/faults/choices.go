// Package faults puts faults into traces as a fuzzer chooses, and knows what readers must still make of them. Only fuzz
// targets use it.
package faults

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Choices are the bytes of which a fuzzer makes decisions. When they are used up every decision is 0.
type Choices []byte

// Random returns the choices of a kept seed.
func Random(seed uint64) Choices {
	r, c := rand.New(rand.NewPCG(seed, 0)), make(Choices, 32)
	for i := range c {
		c[i] = byte(r.Uint32())
	}
	return c
}

// IntN decides on a number below n, with as few bytes as n needs.
func (c *Choices) IntN(n int) int {
	value := uint64(0)
	for limit := uint64(1); limit < uint64(n) && len(*c) > 0; limit <<= 8 {
		value, *c = value<<8|uint64((*c)[0]), (*c)[1:]
	}
	return int(value % uint64(max(n, 1)))
}

// words are numbers at which readers stumble: ends of types, and the limits of the formats and their neighbours. The
// length of what is damaged comes to them.
var words = []uint64{0, 1, 2, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 4096, 4097, 16383, 16384, 65535, 65536, 65537,
	1 << 20, 1<<20 + 1, 1 << 24, 1<<24 + 1, math.MaxInt32, 1 << 31,
	math.MaxUint32, 1 << 32, 1 << 40, 1 << 56, 1 << 57, 1<<57 + 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1,
	math.MaxUint64}

// Word decides on a number that is likely to hurt in something so long.
func (c *Choices) Word(length int) uint64 {
	switch c.IntN(4) {
	case 0:
		return uint64(length) + uint64(c.IntN(3)) - 1
	case 1:
		return uint64(c.IntN(max(length, 1)))
	}
	return words[c.IntN(len(words))]
}

// Bytes damages b in one to three places, and describes how. The result is a new slice.
func (c *Choices) Bytes(b []byte) (_ []byte, how string) {
	b = bytes.Clone(b)
	for n := 1 + c.IntN(3); n > 0; n-- {
		var did string
		b, did = c.once(b)
		how += " " + did
	}
	return b, how
}

// once damages b, which it may change, in one place.
func (c *Choices) once(b []byte) (_ []byte, how string) {
	if len(b) == 0 {
		return append(b, byte(c.IntN(256))), "append"
	}
	at := c.IntN(len(b))
	other := at + c.IntN(len(b)-at) + 1 // after at, up to the end
	if far := at + 1 + c.IntN(64); c.IntN(4) > 0 {
		other = min(other, far)
	}
	switch c.IntN(9) {
	case 0:
		b[at] ^= 1 << c.IntN(8)
		return b, fmt.Sprintf("flip@%d", at)
	case 1:
		b[at] = byte(words[c.IntN(len(words))])
		return b, fmt.Sprintf("byte@%d", at)
	case 2:
		wide := [8]byte{}
		binary.LittleEndian.PutUint64(wide[:], c.Word(len(b)))
		copy(b[at:], wide[:4<<c.IntN(2)])
		return b, fmt.Sprintf("word@%d", at)
	case 3: // a number of 7 bits a byte takes the place of the one that is there, if one is
		end := at
		for end < len(b) && b[end]&0x80 != 0 && end-at < 9 {
			end++
		}
		return slices.Replace(b, at, min(end+1, len(b)), binary.AppendUvarint(nil, c.Word(len(b)))...),
			fmt.Sprintf("varint@%d", at)
	case 4:
		return b[:at], fmt.Sprintf("cut@%d", at)
	case 5:
		return slices.Insert(b, other, bytes.Clone(b[at:other])...), fmt.Sprintf("repeat@%d-%d", at, other)
	case 6:
		return slices.Delete(b, at, other), fmt.Sprintf("delete@%d-%d", at, other)
	case 7:
		return slices.Insert(b, at, binary.AppendUvarint(nil, c.Word(len(b)))...), fmt.Sprintf("insert@%d", at)
	}
	from := c.IntN(len(b))
	copy(b[at:other], b[from:])
	return b, fmt.Sprintf("copy@%d-%d from %d", at, other, from)
}
