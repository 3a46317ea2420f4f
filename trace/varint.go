package trace

import (
	"encoding/binary"
	"errors"
)

var errShort = errors.New("a value reaches past the end of the section")

func zigzag(v int64) uint64 { return uint64(v<<1) ^ uint64(v>>63) }

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// appendText appends a length-prefixed string.
func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

// decoder reads values off a byte slice. After the first value that is not there, failed is set and every further value
// is zero.
type decoder struct {
	data   []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.data = d.data[n:]
	return v
}

// bytes returns the next n bytes, a part of the decoder's data.
func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.data)) {
		d.fail()
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

// text returns a copy of a length-prefixed string of at most limit bytes.
func (d *decoder) text(limit uint64) string {
	n := d.uvarint()
	if n > limit {
		d.fail()
		return ""
	}
	return string(d.bytes(n))
}

// id returns a value that must fit 32 bits.
func (d *decoder) id() uint32 {
	v := d.uvarint()
	if v > 1<<32-1 {
		d.fail()
		return 0
	}
	return uint32(v)
}

// more reports whether values follow: a later version may have appended some to what is being read.
func (d *decoder) more() bool { return len(d.data) > 0 }

// octet returns a value that must fit 8 bits.
func (d *decoder) octet() uint8 {
	v := d.uvarint()
	if v > 1<<8-1 {
		d.fail()
		return 0
	}
	return uint8(v)
}

func (d *decoder) stackEnd() StackEnd { return StackEnd(d.octet()) }

func (d *decoder) fail() {
	d.failed = true
	d.data = nil
}
