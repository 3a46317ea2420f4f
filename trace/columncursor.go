package trace

import (
	"encoding/binary"
	"math/bits"
)

// columnCursor reads the values of one column in order. Its memory is a part of the block's bytes, plus for
// EncodingTable one word per distinct value, each of which took at least two bytes.
type columnCursor struct {
	encoding Encoding
	signed   bool
	data     []byte
	at       int // in data
	previous uint64
	run      uint64
	stride   uint64
	last     [laneSlots]uint64
	table    []uint64
}

// open starts on a column's bytes.
func (c *columnCursor) open(encoding Encoding, signed bool, data []byte) {
	c.encoding, c.signed, c.data, c.at = encoding, signed, data, 0
	c.previous, c.run, c.stride = 0, 0, 0
	c.table = c.table[:0]
	switch encoding {
	case EncodingSame, EncodingAccount, EncodingBalance:
		c.last = [laneSlots]uint64{}
		c.run, _ = c.uvarint()
	}
}

// uvarint takes one varint off the column.
func (c *columnCursor) uvarint() (v uint64, ok bool) {
	if c.at < len(c.data) && c.data[c.at] < 0x80 {
		c.at++
		return uint64(c.data[c.at-1]), true
	}
	v, n := longVarint(c.data[c.at:])
	if n <= 0 {
		return 0, false
	}
	c.at += n
	return v, true
}

// varints fills out with plain varints, which is where a reader spends its time.
func (c *columnCursor) varints(out []uint64) error {
	data, at := c.data, c.at
	for i := range out {
		if at+1 < len(data) {
			b := data[at]
			if b < 0x80 {
				out[i] = uint64(b)
				at++
				continue
			}
			if next := data[at+1]; next < 0x80 {
				out[i] = uint64(b&0x7f) | uint64(next)<<7
				at += 2
				continue
			}
		}
		v, n := longVarint(data[at:])
		if n <= 0 {
			return errColumn
		}
		out[i] = v
		at += n
	}
	c.at = at
	return nil
}

// longVarint is binary.Uvarint for values that mostly take three to eight bytes, as sizes do: it takes them in one
// piece.
func longVarint(data []byte) (v uint64, n int) {
	if len(data) < 8 {
		return binary.Uvarint(data)
	}
	word := binary.LittleEndian.Uint64(data)
	last := ^word & 0x8080808080808080 // the top bit of the last byte is the first one that is not set
	if last == 0 {
		return binary.Uvarint(data)
	}
	word &= last ^ (last - 1) // up to there
	word = word&0x007f007f007f007f | word&0x7f007f007f007f00>>1
	word = word&0x00003fff00003fff | word&0x3fff00003fff0000>>2
	word = word&0x000000000fffffff | word&0x0fffffff00000000>>4
	return word, (bits.TrailingZeros64(last) + 1) / 8
}

// fixed takes the next n values if it is easily seen that they are all the same; by holds their lanes where the
// encoding needs them.
func (c *columnCursor) fixed(n int, by *lanes) (v uint64, ok bool, err error) {
	switch c.encoding {
	case EncodingRun:
		if c.run == 0 {
			if err := c.nextValue(); err != nil {
				return 0, false, err
			}
		}
		if c.run < uint64(n) {
			return 0, false, nil
		}
		c.run -= uint64(n)
		return c.previous, true, nil
	case EncodingSame:
		v, ok = c.allPredicted(by.calls, n)
	case EncodingAccount:
		if by.accounts != 0 {
			v, ok = c.allPredicted(by.accounts, n)
		}
	}
	return v, ok, nil
}

// next fills out with the next values; by holds their lanes where the encoding needs them.
func (c *columnCursor) next(out []uint64, by *lanes) error {
	switch c.encoding {
	case EncodingDelta:
		if err := c.varints(out); err != nil {
			return err
		}
		previous := c.previous
		for i, d := range out {
			previous += uint64(unzigzag(d))
			out[i] = previous
		}
		c.previous = previous
		return nil
	case EncodingPlain:
		if err := c.varints(out); err != nil {
			return err
		}
		if c.signed {
			for i, v := range out {
				out[i] = uint64(unzigzag(v))
			}
		}
		return nil
	case EncodingRun:
		return c.nextRuns(out)
	case EncodingStep:
		return c.nextSteps(out)
	case EncodingTable:
		return c.nextTable(out)
	case EncodingSame:
		return c.nextPredicted(out, by.call, nil)
	case EncodingAccount:
		if by.accounts != 0 {
			return c.nextFrom(out, by.accounts, nil)
		}
		return c.nextPredicted(out, by.account, nil)
	case EncodingBalance:
		if by.accounts != 0 {
			return c.nextFrom(out, by.accounts, by.step)
		}
		return c.nextPredicted(out, by.account, by.step)
	}
	return errColumn
}

// nextRun reads the head of the next run: a length, which is never 0, and a value.
func (c *columnCursor) nextRun() (value uint64, err error) {
	run, ok := c.uvarint()
	if !ok || run == 0 {
		return 0, errColumn
	}
	value, ok = c.uvarint()
	if !ok {
		return 0, errColumn
	}
	c.run = run
	return value, nil
}

// nextValue is nextRun for EncodingRun.
func (c *columnCursor) nextValue() error {
	value, err := c.nextRun()
	if c.signed {
		value = uint64(unzigzag(value))
	}
	c.previous = value
	return err
}

func (c *columnCursor) nextRuns(out []uint64) error {
	for i := 0; i < len(out); {
		if c.run == 0 {
			if i += c.singles(out[i:]); i == len(out) {
				break
			}
			if err := c.nextValue(); err != nil {
				return err
			}
		}
		n := int(min(c.run, uint64(len(out)-i)))
		fill(out[i:][:n], c.previous)
		i += n
		c.run -= uint64(n)
	}
	return nil
}

// singles takes runs of one small value each, as far as they follow each other, and returns how many there were.
func (c *columnCursor) singles(out []uint64) (n int) {
	data, at, v := c.data, c.at, c.previous
	for ; n < len(out) && at+2 < len(data) && data[at] == 1; n++ {
		if next := data[at+1]; next < 0x80 {
			v = uint64(next)
			at += 2
		} else if more := data[at+2]; more < 0x80 {
			v = uint64(next&0x7f) | uint64(more)<<7
			at += 3
		} else {
			break
		}
		if c.signed {
			v = uint64(unzigzag(v))
		}
		out[n] = v
	}
	c.at, c.previous = at, v
	return n
}

func fill(out []uint64, v uint64) {
	for i := range out {
		out[i] = v
	}
}

func (c *columnCursor) nextSteps(out []uint64) error {
	for len(out) > 0 {
		if c.run == 0 {
			stride, err := c.nextRun()
			if err != nil {
				return err
			}
			c.stride = uint64(unzigzag(stride))
		}
		n := int(min(c.run, uint64(len(out))))
		v := c.previous
		for i := range out[:n] {
			v += c.stride
			out[i] = v
		}
		c.previous = v
		out = out[n:]
		c.run -= uint64(n)
	}
	return nil
}

func (c *columnCursor) nextTable(out []uint64) error {
	data, at, table := c.data, c.at, c.table
	for i := range out {
		var v uint64
		if at+1 < len(data) && data[at] < 0x80 {
			v = uint64(data[at])
			at++
		} else if at+1 < len(data) && data[at+1] < 0x80 {
			v = uint64(data[at]&0x7f) | uint64(data[at+1])<<7
			at += 2
		} else {
			n := 0
			if v, n = longVarint(data[at:]); n <= 0 {
				return errColumn
			}
			at += n
		}
		if v != 0 {
			if v > uint64(len(table)) {
				return errColumn
			}
			out[i] = table[v-1]
			continue
		}
		d, n := longVarint(data[at:])
		if n <= 0 {
			return errColumn
		}
		at += n
		c.previous += uint64(unzigzag(d))
		table = append(table, c.previous)
		out[i] = c.previous
	}
	c.at, c.table = at, table
	return nil
}

// allPredicted reports whether the next n values follow their slots' last values, and these are the same. slots is the
// set of the slots.
func (c *columnCursor) allPredicted(slots uint64, n int) (v uint64, all bool) {
	if c.run < uint64(n) {
		return 0, false
	}
	v = c.last[bits.TrailingZeros64(slots)%laneSlots]
	for slots &= slots - 1; slots != 0; slots &= slots - 1 {
		if c.last[bits.TrailingZeros64(slots)%laneSlots] != v {
			return 0, false
		}
	}
	c.run -= uint64(n)
	return v, true
}

// nextPredicted reads values that follow their slot's last value (plus its step): a count of values that do, then the
// difference of one that does not.
func (c *columnCursor) nextPredicted(out []uint64, slots []uint8, steps []uint64) error {
	run := c.run
	slots = slots[:len(out)]
	for i := range out {
		last := &c.last[slots[i]%laneSlots]
		v := *last
		if steps != nil {
			v += steps[i]
		}
		if run > 0 {
			run--
		} else {
			d, ok := c.uvarint()
			if !ok {
				return errColumn
			}
			v += uint64(unzigzag(d))
			run, _ = c.uvarint() // the count after the last miss may be left out
		}
		*last = v
		out[i] = v
	}
	c.run = run
	return nil
}

// nextFrom is nextPredicted where all values have one and the same slot, given as a set.
func (c *columnCursor) nextFrom(out []uint64, slots uint64, steps []uint64) error {
	last := &c.last[bits.TrailingZeros64(slots)%laneSlots]
	v := *last
	for i := 0; i < len(out); {
		n := int(min(c.run, uint64(len(out)-i)))
		hits := out[i:][:n]
		if steps == nil {
			fill(hits, v)
		} else {
			for k, step := range steps[i:][:n] {
				v += step
				hits[k] = v
			}
		}
		c.run -= uint64(n)
		if i += n; i == len(out) {
			break
		}
		if steps != nil {
			v += steps[i]
		}
		d, ok := c.uvarint()
		if !ok {
			return errColumn
		}
		v += uint64(unzigzag(d))
		c.run, _ = c.uvarint() // the count after the last miss may be left out
		out[i] = v
		i++
	}
	*last = v
	return nil
}
