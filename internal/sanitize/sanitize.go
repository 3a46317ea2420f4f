// Package sanitize makes text safe to show. Traces hold names that their programs chose, folders hold files that
// anybody may have put there, and a terminal obeys what is in them: control characters move the cursor, change the
// title, answer questions as if the user had typed; those of C1 do the same in one byte; marks of direction let a line
// read as another one; a line end forges a line.
//
// Text is for one piece of text, where it is put into a line. A Writer is in front of the program's output and escapes
// what was missed in a piece.
package sanitize

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns s with everything but printable characters written as an escape: \x1b, \u202e, \x0a.
func Text(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	out := make([]byte, 0, len(s)+16)
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if invalid := r == utf8.RuneError && size == 1; invalid || !unicode.IsPrint(r) {
			out = appendEscape(out, r, s[0], invalid)
		} else {
			out = append(out, s[:size]...)
		}
		s = s[size:]
	}
	return string(out)
}

func appendEscape(out []byte, r rune, first byte, invalid bool) []byte {
	switch {
	case invalid:
		return fmt.Appendf(out, `\x%02x`, first)
	case r < 0x80:
		return fmt.Appendf(out, `\x%02x`, r)
	case r > 0xffff:
		return fmt.Appendf(out, `\U%08x`, r)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}

// Form is what a text is, and thus what may be in it besides printable characters.
type Form uint8

const (
	Lines   Form = iota // line ends
	Colored             // line ends, and sequences that choose colours
	JSON                // line ends; its strings are escaped in their own way, which changes no value
	Bytes               // no text at all: passes as it is
)

// Writer escapes what does not belong into its form and passes the rest on. A character may come in several pieces.
type Writer struct {
	w    io.Writer
	form Form
	rest []byte // of a character or a sequence that has not come to its end
	out  []byte
}

// NewWriter returns a writer to w. The caller calls Flush in the end.
func NewWriter(w io.Writer, form Form) *Writer { return &Writer{w: w, form: form} }

func (v *Writer) Write(p []byte) (int, error) {
	if v.form == Bytes {
		return v.w.Write(p)
	}
	text := p
	if len(v.rest) > 0 {
		text = append(v.rest, p...)
		v.rest = nil
	}
	v.out = v.out[:0]
	clean := 0 // from here on, nothing had to be escaped
	for i := 0; i < len(text); {
		size, ok := v.next(text[i:])
		if size == 0 {
			v.out = append(v.out, text[clean:i]...)
			v.rest = append([]byte(nil), text[i:]...)
			return len(p), v.pass(v.out)
		}
		if !ok {
			v.out = v.escape(append(v.out, text[clean:i]...), text[i:i+size])
			clean = i + size
		}
		i += size
	}
	if clean == 0 {
		return len(p), v.pass(text)
	}
	return len(p), v.pass(append(v.out, text[clean:]...))
}

// Flush writes what waits for its end, escaped.
func (v *Writer) Flush() error {
	if len(v.rest) == 0 {
		return nil
	}
	v.out = v.out[:0]
	for _, b := range v.rest {
		if b >= ' ' && b < 0x7f {
			v.out = append(v.out, b)
		} else {
			v.out = v.escape(v.out, []byte{b})
		}
	}
	v.rest = nil
	return v.pass(v.out)
}

func (v *Writer) pass(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := v.w.Write(text)
	return err
}

// next returns the size of the character or sequence that a text begins with, 0 if its end has not come yet, and
// whether it may pass.
func (v *Writer) next(text []byte) (size int, ok bool) {
	switch c := text[0]; {
	case c >= ' ' && c < 0x7f, c == '\n':
		return 1, true
	case c == 0x1b && v.form == Colored:
		return colour(text)
	case c < utf8.RuneSelf:
		return 1, false
	}
	if !utf8.FullRune(text) {
		return 0, false
	}
	r, size := utf8.DecodeRune(text)
	return size, (r != utf8.RuneError || size > 1) && unicode.IsPrint(r)
}

// maxColour bounds a sequence that chooses colours.
const maxColour = 32

// colour looks for ESC [ 1;31 m. Of any other sequence only its first character is taken, which is enough to make it
// harmless.
func colour(text []byte) (size int, ok bool) {
	for i, c := range text[:min(len(text), maxColour)] {
		switch {
		case i == 0, i == 1 && c == '[', i > 1 && (c == ';' || c >= '0' && c <= '9'):
		case i > 1 && c == 'm':
			return i + 1, true
		default:
			return 1, false
		}
	}
	if len(text) < maxColour {
		return 0, false
	}
	return 1, false
}

func (v *Writer) escape(out, character []byte) []byte {
	r, size := utf8.DecodeRune(character)
	invalid := r == utf8.RuneError && size <= 1
	if v.form != JSON {
		return appendEscape(out, r, character[0], invalid)
	}
	if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
		return fmt.Appendf(out, `\u%04x\u%04x`, high, low)
	}
	return fmt.Appendf(out, `\u%04x`, r)
}
