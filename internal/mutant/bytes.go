package mutant

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// words are numbers at which readers stumble: ends of types, and the limits of the formats and their neighbours. The
// length of what is mutated comes to them.
var words = []uint64{0, 1, 2, 7, 8, 63, 64, 127, 128, 255, 256, 4095, 4096, 4097, 16383, 16384, 65535, 65536, 65537,
	1 << 20, 1<<20 + 1, 1 << 24, 1<<24 + 1, math.MaxInt32, 1 << 31,
	math.MaxUint32, 1 << 32, 1 << 40, 1 << 56, 1 << 57, 1<<57 + 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1,
	math.MaxUint64}

// Word returns a number that is likely to hurt in something so long.
func Word(r *rand.Rand, length int) uint64 {
	switch r.IntN(4) {
	case 0:
		return uint64(length) + uint64(r.IntN(3)) - 1
	case 1:
		return uint64(r.IntN(max(length, 1)))
	}
	return words[r.IntN(len(words))]
}

// Bytes damages b in one to three places, and says how. The result is a new slice.
func Bytes(r *rand.Rand, b []byte) (_ []byte, how string) {
	b = bytes.Clone(b)
	for n := 1 + r.IntN(3); n > 0; n-- {
		var did string
		b, did = once(r, b)
		how += " " + did
	}
	return b, how
}

// once damages b, which it may change, in one place.
func once(r *rand.Rand, b []byte) (_ []byte, how string) {
	if len(b) == 0 {
		return append(b, byte(r.Uint32())), "append"
	}
	at := r.IntN(len(b))
	other := at + r.IntN(len(b)-at) + 1 // behind at, up to the end
	if far := at + 1 + r.IntN(64); r.IntN(4) > 0 {
		other = min(other, far)
	}
	switch r.IntN(9) {
	case 0:
		b[at] ^= 1 << r.IntN(8)
		return b, fmt.Sprintf("flip@%d", at)
	case 1:
		b[at] = byte(words[r.IntN(len(words))])
		return b, fmt.Sprintf("byte@%d", at)
	case 2:
		wide := [8]byte{}
		binary.LittleEndian.PutUint64(wide[:], Word(r, len(b)))
		copy(b[at:], wide[:4<<r.IntN(2)])
		return b, fmt.Sprintf("word@%d", at)
	case 3: // a number of 7 bits a byte takes the place of the one that is there, if one is
		end := at
		for end < len(b) && b[end]&0x80 != 0 && end-at < 9 {
			end++
		}
		return slices.Replace(b, at, min(end+1, len(b)), binary.AppendUvarint(nil, Word(r, len(b)))...),
			fmt.Sprintf("varint@%d", at)
	case 4:
		return b[:at], fmt.Sprintf("cut@%d", at)
	case 5:
		return slices.Insert(b, other, bytes.Clone(b[at:other])...), fmt.Sprintf("repeat@%d-%d", at, other)
	case 6:
		return slices.Delete(b, at, other), fmt.Sprintf("delete@%d-%d", at, other)
	case 7:
		return slices.Insert(b, at, binary.AppendUvarint(nil, Word(r, len(b)))...), fmt.Sprintf("insert@%d", at)
	}
	from := r.IntN(len(b))
	copy(b[at:other], b[from:])
	return b, fmt.Sprintf("copy@%d-%d from %d", at, other, from)
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
