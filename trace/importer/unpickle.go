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
type list struct{ items []any }

// dict is a dictionary of a pickle: keys and values in turn, as written. Later ones win.
type dict struct{ pairs []any }

// maxKeys bounds what get looks through, since a file may refer to one huge dictionary many times. Records of PyTorch
// have about twenty keys.
const maxKeys = 512

// get returns the value of a key, nil if there is none or no dictionary.
func (d *dict) get(key string) any {
	if d == nil {
		return nil
	}
	for i := len(d.pairs) - 2; i >= max(0, len(d.pairs)-maxKeys); i -= 2 {
		if s, ok := d.pairs[i].(string); ok && s == key {
			return d.pairs[i+1]
		}
	}
	return nil
}

type mark struct{}

// unpickler reads the data part of pickle protocols 2 to 5: numbers, texts, lists, tuples and dictionaries. What would
// name or call a Python object is refused, so that no file can make it run anything.
type unpickler struct {
	r     *bufio.Reader
	at    int64 // bytes read
	stack []any
	memo  map[uint64]any
}

func unpickle(r io.Reader) (any, error) {
	u := &unpickler{r: bufio.NewReaderSize(r, 1<<16), memo: map[uint64]any{}}
	for {
		start := u.at
		op, err := u.r.ReadByte()
		if err != nil {
			return nil, u.cut(err)
		}
		u.at++
		if op == '.' {
			if len(u.stack) != 1 {
				return nil, fmt.Errorf("damaged at offset %d: the pickle ends with %d values instead of one", start, len(u.stack))
			}
			return u.stack[0], nil
		}
		if err := u.step(op); err != nil {
			var damage damaged
			if errors.As(err, &damage) {
				return nil, fmt.Errorf("damaged at offset %d: %s", start, string(damage))
			}
			return nil, err
		}
	}
}

// damaged says what is wrong with an instruction.
type damaged string

func (d damaged) Error() string { return string(d) }

func (u *unpickler) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("cut at offset %d: the pickle has no end; copy the whole file", u.at)
	}
	return fmt.Errorf("read at offset %d: %w", u.at, err)
}

// bytes reads n bytes; what is allocated is bounded by what the file holds.
func (u *unpickler) bytes(n uint64) ([]byte, error) {
	if n > math.MaxInt32 {
		return nil, damaged(fmt.Sprintf("a text of %d bytes", n))
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

func (u *unpickler) pop() (any, error) {
	if len(u.stack) == 0 {
		return nil, damaged("a value is missing")
	}
	v := u.stack[len(u.stack)-1]
	u.stack = u.stack[:len(u.stack)-1]
	return v, nil
}

// marked takes what stands above the last mark.
func (u *unpickler) marked() ([]any, error) {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, ok := u.stack[i].(mark); ok {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items, nil
		}
	}
	return nil, damaged("a mark is missing")
}

// take pops n values in the order in which they were pushed.
func (u *unpickler) take(n int) ([]any, error) {
	if len(u.stack) < n {
		return nil, damaged("a value is missing")
	}
	items := append([]any(nil), u.stack[len(u.stack)-n:]...)
	u.stack = u.stack[:len(u.stack)-n]
	return items, nil
}

// sizes are the bytes of the number that follows an instruction.
var sizes = map[byte]int{
	0x80: 1, 0x95: 8, 'q': 1, 'r': 4, 'h': 1, 'j': 4, 'K': 1, 'M': 2, 'J': 4, 'G': 8, 0x8a: 1, 0x8b: 4,
	'X': 4, 0x8c: 1, 0x8d: 8, 'B': 4, 'C': 1, 0x8e: 8,
}

func (u *unpickler) step(op byte) error {
	var n uint64
	if size := sizes[op]; size > 0 {
		var err error
		if n, err = u.number(size); err != nil {
			return err
		}
	}
	switch op {
	case 0x80:
		if n > 5 {
			return fmt.Errorf("pickle protocol %d; protocols 2 to 5 can be read", n)
		}
	case 0x95: // FRAME
	case 'q', 'r', 0x94, 'h', 'j':
		return u.remember(op, n)
	case 'K', 'M':
		u.push(int64(n))
	case 'J':
		u.push(int64(int32(n)))
	case 'G':
		u.push(math.Float64frombits(reverse(n)))
	case 'X', 0x8c, 0x8d, 'B', 'C', 0x8e:
		b, err := u.bytes(n)
		if err != nil {
			return err
		}
		u.push(string(b))
	case 0x8a, 0x8b:
		return u.long(n)
	case 'N':
		u.push(nil)
	case 0x88, 0x89:
		u.push(op == 0x88)
	case '(':
		u.push(mark{})
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

func (u *unpickler) remember(op byte, n uint64) error {
	if op == 'h' || op == 'j' {
		v, ok := u.memo[n]
		if !ok {
			return damaged(fmt.Sprintf("value %d is used before it is written", n))
		}
		u.push(v)
		return nil
	}
	if op == 0x94 {
		n = uint64(len(u.memo))
	}
	if len(u.stack) == 0 {
		return damaged("a value is missing")
	}
	u.memo[n] = u.stack[len(u.stack)-1]
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

func (u *unpickler) container(op byte) (err error) {
	var items []any
	switch op {
	case '}':
		u.push(&dict{})
		return nil
	case ']', ')':
		u.push(&list{})
		return nil
	case 'a':
		items, err = u.take(1)
	case 's':
		items, err = u.take(2)
	case 0x85, 0x86, 0x87:
		items, err = u.take(int(op) - 0x84)
	case 't', 'e', 'u':
		items, err = u.marked()
	default:
		return fmt.Errorf("the pickle holds more than data (instruction 0x%02x at offset %d), and such instructions are not run; "+
			"write it with torch.cuda.memory._dump_snapshot", op, u.at-1)
	}
	if err != nil {
		return err
	}
	if op == 't' || op >= 0x85 && op <= 0x87 {
		u.push(&list{items})
		return nil
	}
	return u.extend(op, items)
}

// extend adds items to the list or dictionary on the stack.
func (u *unpickler) extend(op byte, items []any) error {
	top, err := u.pop()
	if err != nil {
		return err
	}
	switch c := top.(type) {
	case *list:
		if op == 's' || op == 'u' {
			return damaged("a list is filled like a dictionary")
		}
		c.items = append(c.items, items...)
	case *dict:
		if op == 'a' || op == 'e' || len(items)%2 != 0 {
			return damaged("a dictionary is filled like a list")
		}
		c.pairs = append(c.pairs, items...)
	default:
		return damaged("what is filled is neither a list nor a dictionary")
	}
	u.push(top)
	return nil
}
