package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxLine bounds a line that is kept, in bytes. Logs may hold longer ones, which are passed over.
const maxLine = 1 << 20

// lines reads a text of UTF-8 or UTF-16 line by line. Memory is bounded by maxLine.
type lines struct {
	r      *bufio.Reader
	number int    // of the line that next returned, from 1
	ended  bool   // that line has an end; a file that was cut off has none
	long   bool   // it is longer than maxLine, and not given
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

// cutLine is said of a last line without an end: it may be one that was cut, and its number another one.
const cutLine = "The last line is cut or has no end, and was left out."

// quoteShort quotes a text, of which it shows the beginning.
func quoteShort(text string) string {
	if r := []rune(text[:min(len(text), 400)]); len(r) > 60 {
		text = string(r[:60]) + "…"
	}
	return strconv.Quote(text)
}

// Limits of what a line may say.
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
