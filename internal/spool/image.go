package spool

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"unsafe"
)

// image is the bytes of a spool's file, which the recorder goes on changing. Callers ask in before they read what the
// file need not hold.
type image []byte

// room returns how many elements of a size fit between off and the end of the file.
func (m image) room(off, size uint64) uint32 {
	if off >= uint64(len(m)) {
		return 0
	}
	return uint32(min((uint64(len(m))-off)/size, math.MaxUint32))
}

// in reports whether [off, off+n) is inside the mapping; a cut copy of a spool simply ends early.
func (m image) in(off, n uint64) bool {
	size := uint64(len(m))
	return off <= size && n <= size-off
}

func (m image) u32(off uint64) uint32 { return binary.LittleEndian.Uint32(m[off:]) }
func (m image) u64(off uint64) uint64 { return binary.LittleEndian.Uint64(m[off:]) }

// word32 and word64 return the shared words that both sides change. The callers' offsets are aligned by layout and
// checked by slicing.
func (m image) word32(off uint64) *uint32 {
	b := m[off : off+4 : off+4]
	return (*uint32)(unsafe.Pointer(&b[0]))
}

func (m image) word64(off uint64) *uint64 {
	b := m[off : off+8 : off+8]
	return (*uint64)(unsafe.Pointer(&b[0]))
}

func (m image) load32(off uint64) uint32 { return atomic.LoadUint32(m.word32(off)) }
func (m image) load64(off uint64) uint64 { return atomic.LoadUint64(m.word64(off)) }
