package sanitize

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

const hostile = "a\x1b]0;t\x07\r\n\t\x00\x7f\u009b31m\u202e\u2066\u200f\u200eb\xff\xe2\x80\U000e0041\u2028ü…█"

func TestText(t *testing.T) {
	want := `a\x1b]0;t\x07\x0d\x0a\x09\x00\x7f\u009b31m\u202e\u2066\u200f\u200eb\xff\xe2\x80\U000e0041\u2028ü…█`
	if got := Text(hostile); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := Text("plain ü…"); got != "plain ü…" {
		t.Errorf("%q", got)
	}
}

// write passes text to a writer in pieces of n bytes.
func write(t *testing.T, form Form, text string, n int) string {
	t.Helper()
	var out bytes.Buffer
	w := NewWriter(&out, form)
	for len(text) > 0 {
		piece := text[:min(n, len(text))]
		if got, err := w.Write([]byte(piece)); err != nil || got != len(piece) {
			t.Fatalf("wrote %d, %v", got, err)
		}
		text = text[len(piece):]
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// However text is cut into pieces, the same comes out, and nothing that a terminal obeys.
func TestWriter(t *testing.T) {
	colours := "\x1b[1mbold\x1b[m \x1b[1;31mred\x1b[0m\x1b[2Jgone\x1b[" + strings.Repeat("1", 40) + "m\x1b]0;t\x07"
	cases := []struct {
		form       Form
		text, want string
	}{
		{Lines, hostile, strings.ReplaceAll(Text(hostile), `\x0a`, "\n")},
		{Lines, "\x1b[1mbold", `\x1b[1mbold`},
		{Lines, "cut \xe2\x96", `cut \xe2\x96`},
		{Colored, colours,
			"\x1b[1mbold\x1b[m \x1b[1;31mred\x1b[0m" + `\x1b[2Jgone\x1b[` + strings.Repeat("1", 40) + `m\x1b]0;t\x07`},
		{Colored, "cut \x1b[1", `cut \x1b[1`},
		{Bytes, hostile, hostile},
	}
	for _, c := range cases {
		for n := 1; n <= len(c.text); n++ {
			if got := write(t, c.form, c.text, n); got != c.want {
				t.Fatalf("in pieces of %d: got\n%q\nwant\n%q", n, got, c.want)
			}
		}
	}
}

func TestWriterKeepsJSON(t *testing.T) {
	before, err := json.Marshal(map[string]string{hostile: hostile})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 100} {
		after := write(t, JSON, string(before), n)
		if strings.IndexFunc(after, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 || !utf8.ValidString(after) {
			t.Errorf("%q", after)
		}
		var a, b map[string]string
		if err := json.Unmarshal(before, &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(after), &b); err != nil {
			t.Fatalf("%v: %s", err, after)
		}
		for key, value := range a {
			if b[key] != value {
				t.Errorf("%q became %q", value, b[key])
			}
		}
	}
}
