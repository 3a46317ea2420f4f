package symbol

import (
	"encoding/binary"
	"hash/fnv"
	"strings"
)

// Identity is what a frame is the same by in every process and on every machine that runs the same code: neither
// addresses nor the folders of a machine count.
type Identity struct {
	Function string
	File     string // as reports shorten it: relative to the working directory, or from its package on
	Line     int
	Python   bool
}

// jit names code made at run time that has no name: its address differs from process to process.
const jit = "[jit]"

// Identity returns the identity of a frame whose file is shortened to place. Its texts are valid UTF-8.
func (f Frame) Identity(place string) Identity {
	function := f.Name()
	if f.Kind == JIT && f.Function == "" {
		function = jit
	}
	return Identity{Function: strings.ToValidUTF8(function, "\ufffd"), File: strings.ToValidUTF8(place, "\ufffd"),
		Line: f.Line, Python: f.Kind == Python}
}

// Hash is the 64-bit FNV-1a hash of the function, a zero byte, the file, two bytes (zero, and 1 for Python), and the
// line in four bytes, least significant first.
func (i Identity) Hash() uint64 {
	h := fnv.New64a()
	h.Write([]byte(i.Function))
	h.Write([]byte{0})
	h.Write([]byte(i.File))
	rest := []byte{0, 0}
	if i.Python {
		rest[1] = 1
	}
	h.Write(binary.LittleEndian.AppendUint32(rest, uint32(i.Line)))
	return h.Sum64()
}

// HashStack is the 64-bit FNV-1a hash of the hashes of a stack's frames, innermost first, eight bytes of each, least
// significant first; 0 without frames.
func HashStack(frames []uint64) uint64 {
	if len(frames) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, frame := range frames {
		h.Write(binary.LittleEndian.AppendUint64(nil, frame))
	}
	return h.Sum64()
}
