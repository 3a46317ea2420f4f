package textform

import (
	"bytes"
	_ "embed"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memtrace/trace"
)

// dump returns the text form of a trace.
func dump(t testing.TB, file []byte) string {
	t.Helper()
	var text strings.Builder
	if err := Write(&text, open(t, file)); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func open(t testing.TB, file []byte) *trace.Reader {
	t.Helper()
	r, err := trace.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readToEnd returns a reader that has read a trace.
func readToEnd(t testing.TB, file []byte) *trace.Reader {
	t.Helper()
	r := open(t, file)
	for {
		if _, err := r.ReadBatch(); err == io.EOF {
			return r
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// encode returns the trace of a text form.
func encode(t testing.TB, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	if err := Encode(&file, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// everyLine has a line of each kind, in the order in which a dump writes them.
//
//go:embed testdata/every-line.txt
var everyLine string

func TestTextRoundTrip(t *testing.T) {
	file := encode(t, everyLine)
	if got := dump(t, file); got != everyLine {
		t.Errorf("got\n%swant\n%s", got, everyLine)
	}
	if r := readToEnd(t, file); r.Health().LateEvents != 1 || r.Watermark() != 6 {
		t.Errorf("late %d, watermark %d", r.Health().LateEvents, r.Watermark())
	}
}

func TestTextErrorsNameLineAndColumn(t *testing.T) {
	cases := []struct{ name, text, want string }{
		{"word", "# comment\n\n  allocate seq=1\n", `line 3, column 3: unknown word "allocate"`},
		{"field", "alloc seq=1 tid=4", `line 1, column 13: alloc has no field "tid"`},
		{"field of another kind", "mark seq=1 size=4", `line 1, column 12: mark has no field "size"`},
		{"name", `string id=1 text="x"`, `line 1, column 13: unknown name "text"`},
		{"twice", "alloc seq=1 seq=2", `line 1, column 13: "seq" stands twice`},
		{"number", "alloc seq=x", `line 1, column 7: seq: "x" is neither a known name nor a whole number`},
		{"api", "alloc seq=1 api=cuMemAllok", `line 1, column 13: api: "cuMemAllok" is neither`},
		{"range", "alloc seq=1 device=40000", `line 1, column 13: device: 40000 is out of range`},
		{"range of threads", "alloc seq=1 opthread=65536", `line 1, column 13: opthread: 65536 is out of range`},
		{"wide id", "string id=4294967296", `line 1, column 8: id: "4294967296" is no whole number of 32 bits`},
		{"quote", `string id=1 value="x`, `line 1, column 19: the quoted text does not end`},
		{"glued", `string id=1 value="x"y`, `line 1, column 19: wrong quoted text`},
		{"not quoted", `string id=1 value=x`, `line 1, column 13: value: want a quoted text`},
		{"quoted number", `alloc seq="1"`, `line 1, column 7: seq: want a number`},
		{"no pair", "alloc seq", "line 1, column 7: want name=value"},
		{"frame", "stack id=1 frames=0x1,,", `line 1, column 12: frames: "" is no address`},
		{"stack end", "stack id=1 frames=0x1 end=soon",
			`line 1, column 23: end: "soon" is no end of a stack; choose from whole`},
		{"python frame", "pystack id=1 frames=1+2,3", `line 1, column 14: frames: "3": want CODE+OFFSET`},
		{"python self", "pystack id=1 frames=1+2@x", `line 1, column 14: frames: "1+2@x": want CODE+OFFSET`},
		{"line table", "code id=1 table=some", `line 1, column 11: table: "some" is no kind of line table`},
		{"table bytes", "code id=1 lines=8", `line 1, column 11: lines: want pairs of hexadecimal digits`},
		{"flag", "code id=1 modulecall=2", `line 1, column 11: modulecall: "2" is no whole number of 1 bits`},
		{"outer alone", "symbol address=0x5\nsymbol address=0x6 outer=1",
			`line 2, column 1: outer=1 must follow a symbol of the same module and address`},
		{"start behind", "symbol address=0x5 start=0x6", `line 1, column 1: the function starts behind the address`},
		{"version", "trace version=9", "line 1, column 1: trace format version not supported: the text has version 9"},
		{"after the end", "end\nalloc seq=1", `line 2, column 1: "alloc" after the end line`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Encode(&bytes.Buffer{}, strings.NewReader(c.text))
			var text *Error
			if !errors.As(err, &text) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestTextToFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full on this system")
	}
	defer full.Close()
	if err := Encode(full, strings.NewReader("alloc seq=1")); err == nil {
		t.Error("encoding to a full disk gave no error")
	}
	r, err := trace.NewReader(bytes.NewReader(encode(t, everyLine)), -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(full, r); err == nil {
		t.Error("dumping to a full disk gave no error")
	}
}

func TestEncodeTextReportsReadError(t *testing.T) {
	f, err := os.Open(filepath.Join(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text *Error
	if err := Encode(&bytes.Buffer{}, f); err == nil || errors.As(err, &text) {
		t.Errorf("reading a folder as text: %v", err)
	}
}

// A line's first word is its kind: no kind of event is called like another line.
func TestWordsOfLinesDiffer(t *testing.T) {
	for _, kind := range trace.EventSpecs {
		if lineParsers[kind.Name] != nil {
			t.Errorf("%q is the word of two lines", kind.Name)
		}
	}
}
