package importer

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"
)

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
	case 't', 'e', 'u', 'l', 'd':
		items, err = u.marked()
	default:
		return fmt.Errorf(
			"the pickle holds more than data (instruction 0x%02x at offset %d), and such instructions are not run; "+
				"write it with torch.cuda.memory._dump_snapshot", op, u.at-1)
	}
	if err != nil {
		return err
	}
	for i := range items {
		items[i] = u.to.finish(items[i])
	}
	switch op {
	case 't', 'l', 0x85, 0x86, 0x87:
		u.push(&list{items: append([]any(nil), items...)})
		return nil
	case 'd':
		if len(items)%2 != 0 {
			return damaged("a dictionary is filled like a list")
		}
		u.push(&dict{pairs: append([]any(nil), items...)})
		return nil
	}
	return u.extend(op, items)
}

// extend adds items to the list or dictionary on the stack.
func (u *unpickler) extend(op byte, items []any) error {
	if len(u.stack) == 0 {
		return damaged("a value is missing")
	}
	switch c := u.stack[len(u.stack)-1].(type) {
	case *list:
		if op == 's' || op == 'u' {
			return damaged("a list is filled like a dictionary")
		}
		c.items = append(c.items, items...)
		return u.to.filled(u.stack, c)
	case *dict:
		if op == 'a' || op == 'e' || len(items)%2 != 0 {
			return damaged("a dictionary is filled like a list")
		}
		c.pairs = append(c.pairs, items...)
		return nil
	}
	return damaged("what is filled is neither a list nor a dictionary")
}

// maxDigits bounds lines of digits.
const maxDigits = 1 << 10

// line reads an instruction of protocols 0 and 1 whose argument is a line.
func (u *unpickler) line(op byte) error {
	var text []byte
	for {
		piece, err := u.r.ReadSlice('\n')
		u.at += int64(len(piece))
		text = append(text, piece...)
		if err == nil {
			break
		}
		if len(piece) == 0 || len(text) > maxLine {
			return u.cut(err)
		}
	}
	text = text[:len(text)-1]
	switch op {
	case 'V':
		s, ok := unescape(text)
		if !ok {
			return damaged("a text with an escape that is none")
		}
		u.text(s)
		return nil
	case 'F':
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return damaged("a number that is none")
		}
		u.push(f)
		return nil
	}
	if op == 'I' && len(text) == 2 && text[0] == '0' { // 00 and 01 are False and True
		u.push(text[1] == '1')
		return nil
	}
	n, err := strconv.ParseInt(string(bytes.TrimSuffix(text, []byte("L"))), 10, 64)
	if err != nil || len(text) > maxDigits {
		return damaged("a number that is none, or has more than 64 bits")
	}
	switch op {
	case 'p':
		return u.keep(uint64(n))
	case 'g':
		return u.again(uint64(n))
	}
	u.push(n)
	return nil
}

// unescape reads Latin-1 with the escapes \uXXXX and \UXXXXXXXX.
func unescape(text []byte) ([]byte, bool) {
	var out []byte
	for i := 0; i < len(text); i++ {
		digits := 0
		if text[i] == '\\' && i+1 < len(text) {
			digits = map[byte]int{'u': 4, 'U': 8}[text[i+1]]
		}
		if digits == 0 {
			out = utf8.AppendRune(out, rune(text[i]))
			continue
		}
		if i+2+digits > len(text) {
			return nil, false
		}
		r, err := strconv.ParseUint(string(text[i+2:i+2+digits]), 16, 32)
		if err != nil {
			return nil, false
		}
		out = utf8.AppendRune(out, rune(r))
		i += 1 + digits
	}
	return out, true
}
