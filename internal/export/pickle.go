package export

import (
	"bufio"
	"encoding/binary"
	"math"
	"strings"
)

// pickler writes data in protocol 4 of Python's pickle: numbers, texts, lists and dictionaries. Repeated values are
// memoized. The buffer keeps the first error.
type pickler struct {
	out   *bufio.Writer
	memos uint32
	texts map[string]uint32
}

// Instructions.
const (
	pickleProto    = "\x80\x04"
	pickleStop     = '.'
	pickleMark     = '('
	pickleList     = ']'
	pickleAppends  = 'e'
	pickleDict     = '}'
	pickleSetItems = 'u'
	pickleTuple2   = 0x86
	pickleMemoize  = 0x94
	pickleGet1     = 'h'
	pickleGet4     = 'j'
	pickleText1    = 0x8c
	pickleText4    = 'X'
	pickleInt1     = 'K'
	pickleInt2     = 'M'
	pickleInt4     = 'J'
	pickleLong     = 0x8a
	pickleTrue     = 0x88
	pickleFalse    = 0x89
)

// pickleBatch is how many items are appended at once: readers put them on a stack first.
const pickleBatch = 1000

func newPickler(out *bufio.Writer) *pickler {
	out.WriteString(pickleProto)
	return &pickler{out: out, texts: make(map[string]uint32)}
}

func (p *pickler) op(b byte) { p.out.WriteByte(b) }

// number writes an integer. What exceeds 63 bits is cut to them.
func (p *pickler) number(n uint64) {
	switch {
	case n <= math.MaxUint8:
		p.out.Write([]byte{pickleInt1, byte(n)})
	case n <= math.MaxUint16:
		p.out.Write(binary.LittleEndian.AppendUint16([]byte{pickleInt2}, uint16(n)))
	case n <= math.MaxInt32:
		p.out.Write(binary.LittleEndian.AppendUint32([]byte{pickleInt4}, uint32(n)))
	default:
		p.out.Write(binary.LittleEndian.AppendUint64([]byte{pickleLong, 8}, min(n, math.MaxInt64)))
	}
}

// text writes a text as valid UTF-8.
func (p *pickler) text(s string) {
	s = strings.ToValidUTF8(s, "\ufffd")
	if len(s) <= math.MaxUint8 {
		p.out.Write([]byte{pickleText1, byte(len(s))})
	} else {
		p.out.Write(binary.LittleEndian.AppendUint32([]byte{pickleText4}, uint32(len(s))))
	}
	p.out.WriteString(s)
}

// word writes a frequent text: in full only the first time.
func (p *pickler) word(s string) {
	if n, known := p.texts[s]; known {
		p.again(n)
		return
	}
	p.text(s)
	p.texts[s] = p.remember()
}

// remember memoizes the last value under a number.
func (p *pickler) remember() uint32 {
	p.op(pickleMemoize)
	p.memos++
	return p.memos - 1
}

// again writes what was remembered under a number.
func (p *pickler) again(n uint32) {
	if n <= math.MaxUint8 {
		p.out.Write([]byte{pickleGet1, byte(n)})
	} else {
		p.out.Write(binary.LittleEndian.AppendUint32([]byte{pickleGet4}, n))
	}
}

func (p *pickler) boolean(v bool) {
	if v {
		p.op(pickleTrue)
	} else {
		p.op(pickleFalse)
	}
}

// list writes n items, each by one call of item.
func (p *pickler) list(n int, item func(i int)) {
	p.op(pickleList)
	for i := range n {
		if i%pickleBatch == 0 {
			p.op(pickleMark)
		}
		item(i)
		if i%pickleBatch == pickleBatch-1 || i == n-1 {
			p.op(pickleAppends)
		}
	}
}

// dict writes what fields writes, keys and values in turn.
func (p *pickler) dict(fields func()) {
	p.op(pickleDict)
	p.op(pickleMark)
	fields()
	p.op(pickleSetItems)
}

// field and words write a key and its value.
func (p *pickler) field(key string, n uint64) {
	p.word(key)
	p.number(n)
}

func (p *pickler) words(key, value string) {
	p.word(key)
	p.word(value)
}
