package trace

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// A value is taken in one piece as it is byte by byte: whatever its length, whatever follows it, and where the data
// ends in its midst.
func TestLongVarint(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 8))
	check := func(data []byte) {
		want, length := binary.Uvarint(data)
		if got, n := longVarint(data); n != length || n > 0 && got != want {
			t.Fatalf("% x: %d in %d bytes, want %d in %d", data, got, n, want, length)
		}
	}
	check([]byte{0x80, 0x80, 0x80, 0x00, 1, 2, 3, 4}) // longer than it need be
	check(bytes.Repeat([]byte{0xff}, 12))
	for width := range 65 {
		for range 200 {
			data := binary.AppendUvarint(nil, rng.Uint64()&(1<<width-1))
			for range rng.IntN(10) {
				data = append(data, byte(rng.Uint32()))
			}
			check(data)
			check(data[:rng.IntN(len(data)+1)])
		}
	}
}
