package importer

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// utf16Reader turns UTF-16, as PowerShell's redirection writes it, into UTF-8. What is no character becomes U+FFFD.
type utf16Reader struct {
	r     *bufio.Reader
	order binary.ByteOrder
	rest  []byte
}

// newText returns a file's text as UTF-8, without a byte order mark.
func newText(r io.Reader) *bufio.Reader {
	b := bufio.NewReaderSize(r, 1<<16)
	first, _ := b.Peek(4)
	var order binary.ByteOrder
	mark := 2
	switch {
	case len(first) >= 3 && string(first[:3]) == "\xef\xbb\xbf":
		_, _ = b.Discard(3)
		return b
	case len(first) < 2:
		return b
	case first[0] == 0xff && first[1] == 0xfe:
		order = binary.LittleEndian
	case first[0] == 0xfe && first[1] == 0xff:
		order = binary.BigEndian
	case len(first) == 4 && plain(first[0]) && first[1] == 0 && plain(first[2]) && first[3] == 0:
		order, mark = binary.LittleEndian, 0
	case len(first) == 4 && first[0] == 0 && plain(first[1]) && first[2] == 0 && plain(first[3]):
		order, mark = binary.BigEndian, 0
	default:
		return b
	}
	_, _ = b.Discard(mark)
	return bufio.NewReaderSize(&utf16Reader{r: b, order: order}, 1<<16)
}

// plain reports whether a byte is a character of ASCII that texts begin with.
func plain(b byte) bool { return b >= ' ' && b < 0x7f || b == '\n' || b == '\r' || b == '\t' }

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	n, err := io.ReadFull(u.r, b[:])
	if n == 1 { // a file that was cut
		return utf8.RuneError, nil
	}
	return rune(u.order.Uint16(b[:])), err
}

func (u *utf16Reader) Read(p []byte) (int, error) {
	for len(u.rest) < utf8.UTFMax*len(p) && len(u.rest) < 4096 {
		c, err := u.unit()
		if err != nil {
			if len(u.rest) > 0 {
				break
			}
			return 0, err
		}
		if utf16.IsSurrogate(c) {
			next, err := u.unit()
			if c = utf16.DecodeRune(c, next); err != nil {
				c = utf8.RuneError
			}
		}
		u.rest = utf8.AppendRune(u.rest, c)
	}
	n := copy(p, u.rest)
	u.rest = append(u.rest[:0], u.rest[n:]...)
	return n, nil
}
