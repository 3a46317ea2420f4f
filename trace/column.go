package trace

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

var errColumn = errors.New("a column of the event block is inconsistent")

// lanes are the values that predicting encodings use besides their own column, one per value: they come from fields
// that are earlier in a block.
type lanes struct {
	call    []uint8 // kind and level: slot for EncodingSame
	calls   uint64  // the set of slots that occur in call
	account []uint8 // level and device: slot for EncodingAccount and EncodingBalance
	// the set of slots that occur in account where it is one, so that account is left alone; 0: several
	accounts uint64
	step     []uint64 // bytes by which the event moves its account, two's complement
}

const laneSlots = 64

// columnEncoder turns the values of one column into bytes. Signed fields arrive as two's complement.
type columnEncoder struct {
	encoding Encoding
	signed   bool
	buf      []byte
	previous uint64
	// run: values equal to previous; step: differences equal to stride; predicted: hits since the last miss
	run    uint64
	stride uint64            // step: the difference that repeats
	last   [laneSlots]uint64 // predicted: the last value by slot
	table  *recentTable
}

// reset prepares for a new block; the buffer is kept.
func (c *columnEncoder) reset() {
	c.buf = c.buf[:0]
	c.previous, c.run, c.stride = 0, 0, 0
	switch c.encoding {
	case EncodingSame, EncodingAccount, EncodingBalance:
		c.last = [laneSlots]uint64{}
	case EncodingTable:
		if c.table == nil {
			c.table = new(recentTable)
		}
		c.table.reset()
	}
}

// reserve grows the buffer by n bytes and returns it, and the offset to write at.
func (c *columnEncoder) reserve(n int) ([]byte, int) {
	at := len(c.buf)
	if cap(c.buf)-at < n {
		grown := make([]byte, at, 2*cap(c.buf)+n)
		copy(grown, c.buf)
		c.buf = grown
	}
	return c.buf[:cap(c.buf)], at
}

// putUvarint writes v at buf[at:] and returns the offset after it.
func putUvarint(buf []byte, at int, v uint64) int {
	for v >= 0x80 {
		buf[at] = byte(v) | 0x80
		v >>= 7
		at++
	}
	buf[at] = byte(v)
	return at + 1
}

// append encodes values; by holds their lanes where the encoding needs them.
func (c *columnEncoder) append(values []uint64, by *lanes) {
	// No encoding writes more than two varints for a value.
	buf, at := c.reserve(2 * binary.MaxVarintLen64 * len(values))
	switch c.encoding {
	case EncodingDelta:
		previous := c.previous
		for _, v := range values {
			at = putUvarint(buf, at, zigzag(int64(v-previous)))
			previous = v
		}
		c.previous = previous
	case EncodingPlain:
		for _, v := range values {
			if c.signed {
				v = zigzag(int64(v))
			}
			at = putUvarint(buf, at, v)
		}
	case EncodingRun:
		at = c.appendRuns(buf, at, values)
	case EncodingStep:
		at = c.appendSteps(buf, at, values)
	case EncodingTable:
		at = c.appendTable(buf, at, values)
	case EncodingSame:
		at = c.appendPredicted(buf, at, values, by.call, nil)
	case EncodingAccount:
		at = c.appendPredicted(buf, at, values, by.account, nil)
	case EncodingBalance:
		at = c.appendPredicted(buf, at, values, by.account, by.step)
	}
	c.buf = buf[:at]
}

// appendConstant encodes n times the value v if that can be done at once; otherwise it does nothing and reports false.
func (c *columnEncoder) appendConstant(v uint64, n int, by *lanes) (done bool) {
	switch c.encoding {
	case EncodingRun:
		if v != c.previous && c.run > 0 {
			buf, at := c.reserve(2 * binary.MaxVarintLen64)
			c.buf = buf[:c.putRun(buf, at, c.run, c.previous)]
			c.run = 0
		}
		c.previous = v
	case EncodingSame:
		for slots := by.calls; slots != 0; slots &= slots - 1 {
			if c.last[bits.TrailingZeros64(slots)] != v {
				return false
			}
		}
	default:
		return false
	}
	c.run += uint64(n)
	return true
}

func (c *columnEncoder) appendRuns(buf []byte, at int, values []uint64) int {
	previous, run := c.previous, c.run
	for _, v := range values {
		if v == previous {
			run++
			continue
		}
		if run > 0 {
			at = c.putRun(buf, at, run, previous)
		}
		previous, run = v, 1
	}
	c.previous, c.run = previous, run
	return at
}

func (c *columnEncoder) putRun(buf []byte, at int, run, value uint64) int {
	if c.signed {
		value = zigzag(int64(value))
	}
	return putUvarint(buf, putUvarint(buf, at, run), value)
}

func (c *columnEncoder) appendSteps(buf []byte, at int, values []uint64) int {
	previous, run, stride := c.previous, c.run, c.stride
	for _, v := range values {
		d := v - previous
		previous = v
		if d == stride {
			run++
			continue
		}
		if run > 0 {
			at = putUvarint(buf, putUvarint(buf, at, run), zigzag(int64(stride)))
		}
		stride, run = d, 1
	}
	c.previous, c.run, c.stride = previous, run, stride
	return at
}

func (c *columnEncoder) appendTable(buf []byte, at int, values []uint64) int {
	previous := c.previous
	for _, v := range values {
		if i, known := c.table.find(v); known {
			at = putUvarint(buf, at, i+1)
			continue
		}
		buf[at] = 0
		at = putUvarint(buf, at+1, zigzag(int64(v-previous)))
		previous = v
	}
	c.previous = previous
	return at
}

func (c *columnEncoder) appendPredicted(buf []byte, at int, values []uint64, slots []uint8, steps []uint64) int {
	run := c.run
	slots = slots[:len(values)]
	for i, v := range values {
		last := &c.last[slots[i]%laneSlots]
		expected := *last
		if steps != nil {
			expected += steps[i]
		}
		*last = v
		if v == expected {
			run++
			continue
		}
		at = putUvarint(buf, at, run)
		at = putUvarint(buf, at, zigzag(int64(v-expected)))
		run = 0
	}
	c.run = run
	return at
}

// finish closes an open run and returns the column's bytes, which stay valid until the next reset.
func (c *columnEncoder) finish() []byte {
	if c.run == 0 {
		return c.buf
	}
	buf, at := c.reserve(2 * binary.MaxVarintLen64)
	switch c.encoding {
	case EncodingRun:
		at = c.putRun(buf, at, c.run, c.previous)
	case EncodingStep:
		at = putUvarint(buf, putUvarint(buf, at, c.run), zigzag(int64(c.stride)))
	default:
		at = putUvarint(buf, at, c.run)
	}
	c.buf, c.run = buf[:at], 0
	return c.buf
}

// recentTable finds values that occurred before in the block. It is a cache, not a dictionary: a value that was pushed
// out of its slot is simply sent again and gets a new number.
type recentTable struct {
	slots [1 << recentBits]recentSlot
	next  uint32
	block uint32
}

type recentSlot struct {
	value  uint64
	number uint32
	block  uint32 // block the slot was filled in; an older one means that it is empty
}

const recentBits = 13

func (t *recentTable) reset() {
	t.next = 0
	t.block++
	if t.block == 0 {
		*t = recentTable{block: 1}
	}
}

// find returns the number of a value that is in the table. Otherwise it assigns the value the next number.
func (t *recentTable) find(v uint64) (number uint64, known bool) {
	slot := &t.slots[v*0x9e3779b97f4a7c15>>(64-recentBits)]
	if slot.value == v && slot.block == t.block {
		return uint64(slot.number), true
	}
	*slot = recentSlot{value: v, number: t.next, block: t.block}
	t.next++
	return 0, false
}
