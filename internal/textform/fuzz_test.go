package textform

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// FuzzText: any text yields a trace or an Error; the text of that trace is stable.
func FuzzText(f *testing.F) {
	f.Add(everyLine)
	f.Add(
		"pystack id=1 frames=2+3*@0x4,5+6 end=9\ncode id=2 lines=ff table=locations\nsymbol address=0x5\nsymbol address=0x5 outer=1 start=0x5\nend")
	f.Add("alloc seq=1 size=0x10\nflush\nfree seq=2 size=16 allocated=1")
	f.Fuzz(func(t *testing.T, text string) {
		var file bytes.Buffer
		if err := Encode(&file, strings.NewReader(text)); err != nil {
			var located *Error
			if !errors.As(err, &located) || located.Line < 1 || located.Column < 1 {
				t.Fatalf("error without a place: %v", err)
			}
			return
		}
		r := readToEnd(t, file.Bytes())
		if h := r.Health(); h.Truncated || h.UnknownEvents != 0 || h.SkippedSections != 0 {
			t.Fatalf("a trace from text has health %+v", h)
		}
		checkText(t, file.Bytes())
	})
}

// checkText dumps a trace, encodes the text and dumps it again: the texts must agree, but for the comment on damage.
func checkText(t *testing.T, file []byte) {
	text := dump(t, file)
	var again bytes.Buffer
	if err := Encode(&again, strings.NewReader(text)); err != nil {
		t.Fatalf("the dump of a trace does not parse: %v", err)
	}
	canonical := dump(t, again.Bytes())
	if third := dump(t, encode(t, canonical)); third != canonical {
		t.Fatalf("text changes:\n%s\n%s", canonical, third)
	}
}
