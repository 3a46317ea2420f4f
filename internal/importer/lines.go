package importer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxLine bounds a line that is kept, in bytes. Logs may hold longer ones, which are passed over.
const maxLine = 1 << 20

// lines reads a text of UTF-8 or UTF-16 line by line. Memory is bounded by maxLine.
type lines struct {
	r      *bufio.Reader
	number int    // of the line that next returned, from 1
	ended  bool   // that line has an end; a file that was cut off has none
	long   bool   // it is longer than maxLine, and not returned
	text   []byte // kept for long lines that arrive in pieces
	err    error
}

func newLines(r io.Reader) *lines {
	return &lines{r: newText(r)}
}

// next returns a line without its end. It is valid until the next call.
func (l *lines) next() (line []byte, ok bool) {
	l.text, l.long = l.text[:0], false
	for {
		piece, err := l.r.ReadSlice('\n')
		switch {
		case l.long || len(l.text)+len(piece) > maxLine:
			l.long, l.text = true, l.text[:0]
		case err == bufio.ErrBufferFull || len(l.text) > 0:
			l.text = append(l.text, piece...)
			piece = l.text
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && !errors.Is(err, io.EOF) {
			l.err = fmt.Errorf("line %d: %w", l.number+1, err)
			return nil, false
		}
		if l.ended = err == nil; !l.ended && len(piece) == 0 && !l.long {
			return nil, false
		}
		l.number++
		if l.long {
			return nil, true
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(piece, []byte("\n")), []byte("\r")), true
	}
}

// bad words what is wrong with the line that next returned.
func (l *lines) bad(line []byte, err error) error {
	text := string(line)
	if l.long {
		text = "more than a megabyte"
	}
	return fmt.Errorf("line %d: %s: %w", l.number, quoteShort(text), err)
}

// cutLine is the remark on a last line without an end: it may be cut, and its number with it.
const cutLine = "The last line is cut or has no end, and was left out."

// quoteShort quotes a text, of which it shows the beginning.
func quoteShort(text string) string {
	if r := []rune(text[:min(len(text), 400)]); len(r) > 60 {
		text = string(r[:60]) + "…"
	}
	return strconv.Quote(text)
}

// Limits on the values of a line.
const (
	maxBlock = 1 << 50 // bytes
	maxSum   = 1 << 62
)

// bytesOf reads a number of units of a size as bytes, rounded to the nearest one.
func bytesOf(text string, unit float64) (uint64, error) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || v != v:
		return 0, errors.New("the size is not a number")
	case v < 0:
		return 0, errors.New("the size is negative")
	case v*unit > maxBlock:
		return 0, errors.New("the size is more than any device has")
	}
	return uint64(v*unit + 0.5), nil
}

const mebibyte = 1 << 20

// utf16Reader turns UTF-16, as PowerShell's redirection writes it, into UTF-8. Invalid input becomes U+FFFD.
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
