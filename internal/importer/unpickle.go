package importer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// list is a list or a tuple of a pickle.
type list struct {
	items  []any
	taken  int    // items that were taken in and are not kept, before items
	number uint32 // 1 + that of the memo, 0 for none
}

// dict is a dictionary of a pickle: keys and values in turn, as written. Later ones win.
type dict struct {
	pairs  []any
	number uint32 // as of a list
}

type mark struct{}

// taker receives the values of a pickle while it is read, so that nothing has to be kept.
type taker interface {
	// finish returns what a value becomes when it is put into a container: itself, or what was found in it.
	finish(v any) any
	// filled is called when the list on the top of the stack got new items at its end.
	filled(stack []any, l *list) error
}

// unpickler reads the data part of pickle protocols 0 to 5: numbers, texts, lists, tuples and dictionaries. What would
// name or call a Python object is refused, so that no file can make it run anything.
type unpickler struct {
	r     *bufio.Reader
	at    int64 // bytes read
	stack []any
	memo  memo
	next  uint64 // number that MEMOIZE gives
	texts map[string]any
	to    taker
	buf   []byte
}

// mostWaiting bounds the values that wait for being put into a container. Picklers fill containers by the thousand.
const mostWaiting = 1 << 20

func newUnpickler(r io.Reader) *unpickler {
	return &unpickler{r: bufio.NewReaderSize(r, 1<<18), texts: map[string]any{}}
}

// read returns the pickle's value.
func (u *unpickler) read() (any, error) {
	for {
		start := u.at
		op, err := u.r.ReadByte()
		if err != nil {
			return nil, u.cut(err)
		}
		u.at++
		if op == '.' {
			if len(u.stack) != 1 {
				return nil, fmt.Errorf("damaged at offset %d: the pickle ends with %d values instead of one", start,
					len(u.stack))
			}
			return u.stack[0], nil
		}
		if err = u.step(op); err == nil && len(u.stack) > mostWaiting {
			err = damaged(fmt.Sprintf("more than %d values in one piece", mostWaiting))
		}
		if err != nil {
			var damage damaged
			if errors.As(err, &damage) {
				return nil, fmt.Errorf("damaged at offset %d: %s", start, string(damage))
			}
			return nil, err
		}
	}
}

// damaged returns the error for a faulty instruction.
type damaged string

func (d damaged) Error() string { return string(d) }

func (u *unpickler) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("cut at offset %d: the pickle has no end; copy the whole file", u.at)
	}
	return fmt.Errorf("read at offset %d: %w", u.at, err)
}

// bytes reads n bytes, valid until the next call; what is allocated is bounded by what the file holds.
func (u *unpickler) bytes(n uint64) ([]byte, error) {
	if n > math.MaxInt32 {
		return nil, damaged(fmt.Sprintf("a text of %d bytes", n))
	}
	if n <= 1<<16 {
		if uint64(cap(u.buf)) < n {
			u.buf = make([]byte, 1<<16)
		}
		got, err := io.ReadFull(u.r, u.buf[:n])
		u.at += int64(got)
		if err != nil {
			return nil, u.cut(err)
		}
		return u.buf[:n], nil
	}
	var b bytes.Buffer
	got, err := io.CopyN(&b, u.r, int64(n))
	u.at += got
	if err != nil {
		return nil, u.cut(err)
	}
	return b.Bytes(), nil
}

func (u *unpickler) number(size int) (uint64, error) {
	var b [8]byte
	n, err := io.ReadFull(u.r, b[:size])
	u.at += int64(n)
	if err != nil {
		return 0, u.cut(err)
	}
	return binary.LittleEndian.Uint64(b[:]), nil
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

// text pushes a text, of which there is one, however often it is written.
func (u *unpickler) text(b []byte) {
	v, known := u.texts[string(b)]
	if !known {
		s := string(b)
		v = s
		u.texts[s] = v
	}
	u.push(v)
}

// marked pops what is above the last mark. It is valid until the next push.
func (u *unpickler) marked() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(mark); ok {
			items := u.stack[i+1:]
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, damaged("a mark is missing")
}

// take pops n values in the order in which they were pushed. They are valid until the next push.
func (u *unpickler) take(n int) ([]any, error) {
	if len(u.stack) < n {
		return nil, damaged("a value is missing")
	}
	items := u.stack[len(u.stack)-n:]
	u.stack = u.stack[:len(u.stack)-n]
	return items, nil
}

// sizes are the bytes of the number that follows an instruction.
var sizes = [256]uint8{
	0x80: 1, 0x95: 8, 'q': 1, 'r': 4, 'h': 1, 'j': 4, 'K': 1, 'M': 2, 'J': 4, 'G': 8, 0x8a: 1, 0x8b: 4,
	'X': 4, 0x8c: 1, 0x8d: 8, 'B': 4, 'C': 1, 0x8e: 8, 0x96: 8, 'U': 1, 'T': 4,
}

func (u *unpickler) step(op byte) error {
	var n uint64
	if size := sizes[op]; size > 0 {
		var err error
		if n, err = u.number(int(size)); err != nil {
			return err
		}
	}
	switch op {
	case 0x80:
		if n > 5 {
			return fmt.Errorf("pickle protocol %d; protocols 0 to 5 can be read", n)
		}
	case 0x95: // FRAME
	case 'q', 'r', 0x94:
		if op == 0x94 {
			n = u.next
		}
		return u.keep(n)
	case 'h', 'j':
		return u.again(n)
	case 'K', 'M':
		u.push(int64(n))
	case 'J':
		u.push(int64(int32(n)))
	case 'G':
		u.push(math.Float64frombits(reverse(n)))
	case 'X', 0x8c, 0x8d, 'B', 'C', 0x8e, 0x96, 'U', 'T':
		b, err := u.bytes(n)
		if err != nil {
			return err
		}
		u.text(b)
	case 0x8a, 0x8b:
		return u.long(n)
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case '(':
		u.push(mark{})
	case 'I', 'L', 'F', 'V', 'p', 'g':
		return u.line(op)
	default:
		return u.container(op)
	}
	return nil
}

func reverse(n uint64) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	return binary.BigEndian.Uint64(b[:])
}

// keep gives the value on the stack a number.
func (u *unpickler) keep(n uint64) error {
	if len(u.stack) == 0 {
		return damaged("a value is missing")
	}
	if !u.memo.put(n, u.stack[len(u.stack)-1]) {
		return damaged(fmt.Sprintf("value %d is numbered before those below it", n))
	}
	u.next++
	return nil
}

// again pushes the value of a number.
func (u *unpickler) again(n uint64) error {
	v, ok := u.memo.get(n)
	if !ok {
		return damaged(fmt.Sprintf("value %d is used before it is written, or once more although it is a record", n))
	}
	u.push(v)
	return nil
}

func (u *unpickler) long(n uint64) error {
	b, err := u.bytes(n)
	if err != nil {
		return err
	}
	if len(b) > 9 || len(b) == 9 && b[8] != 0 {
		return damaged("a number of more than 64 bits")
	}
	var v uint64
	for i, c := range b[:min(len(b), 8)] {
		v |= uint64(c) << (8 * i)
	}
	if k := len(b); k > 0 && k < 8 && b[k-1]&0x80 != 0 {
		v |= ^uint64(0) << (8 * k)
	}
	u.push(int64(v))
	return nil
}
