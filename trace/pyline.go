// The source line of an instruction of a Python code object, from the line tables that CPython 3.8 and later keep.
//
// Three forms exist. All describe stretches of bytecode, from the first instruction on, each with a line as the
// difference to the one before:
//
//   - co_lnotab, to 3.9: pairs of bytes. The line so far holds for the next u8 bytes of bytecode, then it changes by
//     s8.
//   - co_linetable of 3.10: pairs of bytes. The line changes by s8 and holds for the next u8 bytes; -128: they
//     have none.
//   - co_linetable from 3.11: entries of one to about twenty bytes. The first one has bit 7 set, which no other byte
//     has, a form in bits 3 to 6 and a length of 1 to 8 units of two bytes
//     in bits 0 to 2. The form is the encoding of the difference that follows.
//
// Tables come from the memory of another program by way of a file, so nothing in them is trusted: any bytes give some
// answer.

package trace

import (
	"iter"
	"math"
)

// LineOpen is the End of a range that reaches to the end of the bytecode, however long that is: the oldest form does
// not contain it.
const LineOpen = math.MaxUint32

// LineRange is a stretch of bytecode that belongs to one line.
type LineRange struct {
	Start, End uint32 // offsets into the bytecode in bytes; without End itself
	Line       int32
	None       bool // it belongs to no line; Line is then meaningless
}

// LineRanges returns the stretches of a code object's bytecode in order, without gaps and not empty; neighbours of the
// same line are not joined. A table that is cut or damaged gives what precedes the damage. A kind of table that is not
// known gives nothing.
func LineRanges(table LineTable, lines []byte, firstLine int32) iter.Seq[LineRange] {
	switch table {
	case LinesLnotab:
		return func(yield func(LineRange) bool) { lnotab(lines, firstLine, yield) }
	case LinesRanges:
		return func(yield func(LineRange) bool) { pairs(lines, firstLine, yield) }
	case LinesLocations:
		return func(yield func(LineRange) bool) { locations(lines, firstLine, yield) }
	}
	return func(func(LineRange) bool) {}
}

// LineNotBegun is the offset of a frame that has not run its first instruction, as while a profile function is called
// for the call event. It is on the code's first line.
const LineNotBegun = math.MaxInt32

// DecodeLine returns the line of the instruction at an offset, in bytes into the bytecode; ok=false if it has none or
// the table has no entry.
func DecodeLine(table LineTable, lines []byte, firstLine int32, offset uint32) (line int32, ok bool) {
	if offset == LineNotBegun {
		return firstLine, true
	}
	for r := range LineRanges(table, lines, firstLine) {
		if offset < r.End || r.End == LineOpen && offset >= r.Start {
			return r.Line, !r.None
		}
	}
	return 0, false
}

func lnotab(table []byte, line int32, yield func(LineRange) bool) {
	r := LineRange{Line: line}
	for ; len(table) >= 2; table = table[2:] {
		r.End += uint32(table[0])
		if r.End > r.Start {
			if !yield(r) {
				return
			}
			r.Start = r.End
		}
		r.Line += int32(int8(table[1]))
	}
	r.End = LineOpen
	yield(r)
}

func pairs(table []byte, line int32, yield func(LineRange) bool) {
	const noLine = -128
	r := LineRange{Line: line}
	for ; len(table) >= 2; table = table[2:] {
		r.End += uint32(table[0])
		change := int8(table[1])
		if r.None = change == noLine; !r.None {
			r.Line += int32(change)
		}
		if r.End > r.Start && !yield(r) {
			return
		}
		r.Start = r.End
	}
}

// The forms of entries from 3.11 on that the line depends on; those below oneLine stay on the line and have columns in
// one more byte.
const (
	formOneLine0  = 10 // 10, 11 and 12: the line changes by 0, 1 and 2; two more bytes have columns
	formNoColumns = 13 // a signed number follows
	formLong      = 14 // a signed number follows, and three more for the last line and the columns
	formNone      = 15 // no line; the running line stays
)

func locations(table []byte, line int32, yield func(LineRange) bool) {
	r := LineRange{Line: line}
	for len(table) > 0 {
		head := table[0]
		if head&0x80 == 0 {
			return // not the beginning of an entry
		}
		// Columns are passed over as what they are: bytes before the next entry.
		n := 1
		for n < len(table) && table[n]&0x80 == 0 {
			n++
		}
		rest := table[1:n]
		table = table[n:]
		form := head >> 3 & 15
		r.None = form == formNone
		switch form {
		case formNoColumns, formLong:
			change, ok := signed(rest)
			if !ok {
				return
			}
			r.Line += change
		case formOneLine0, formOneLine0 + 1, formOneLine0 + 2:
			r.Line += int32(form - formOneLine0)
		}
		r.End += 2 * (uint32(head&7) + 1)
		if !yield(r) {
			return
		}
		r.Start = r.End
	}
}

// signed reads a number: six bits in a byte, lowest first, bit 6 set where more follow; its lowest bit is the sign.
func signed(b []byte) (v int32, ok bool) {
	var u uint32
	for i, c := range b {
		if shift := 6 * i; shift < 32 {
			u |= uint32(c&63) << shift
		}
		if c&64 == 0 {
			v = int32(u >> 1)
			if u&1 != 0 {
				v = -v
			}
			return v, true
		}
	}
	return 0, false
}
