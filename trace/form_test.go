package trace

import (
	"bytes"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
)

// The text form is above this package, whose tests use it: external_test.go sets these.
var (
	WriteText  func(io.Writer, Source) error
	EncodeText func(io.Writer, io.Reader) error
)

// dump returns the text form of a trace.
func dump(t testing.TB, file []byte) string {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := WriteText(&text, r); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// encode returns the trace of a text form.
func encode(t testing.TB, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := EncodeText(&file, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// everyLine is a text form with a line of each kind, in the order in which a dump writes them.
var everyLine = sync.OnceValue(func() string {
	text, err := os.ReadFile("../internal/textform/testdata/every-line.txt")
	if err != nil {
		panic(err)
	}
	return string(text)
})

func TestTextOfStreamRoundTrips(t *testing.T) {
	text := dump(t, encodeTrace(t, trainingStream(5000, 3), 1500))
	if again := dump(t, encode(t, text)); again != text {
		t.Error("text of a stream changes when it is encoded and dumped again")
	}
}
