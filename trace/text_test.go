package trace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

const everyLine = `trace version=1
info key="env.X\n\"" value="\x00\xff end"
info key="process.pid" value="4711"
string id=3 value="model.encoder"
string id=4 value=""
stack id=5 frames=0x7f0000001234,0x401020,0x0,0xffffffffffffffff
stack id=6 frames=
stack id=8 frames=0x401020 end=interpreter
stack id=9 frames=0x401020 end=200
code id=10 name="forward" qualname="Model.forward" file="/home/me/train é.py" line=-7 table=locations lines=80007aff modulecall=1
code id=11 name="" qualname="" file="" line=0 table=none
code id=12 name="old" qualname="" file="a.py" line=3 table=77 lines=00
pystack id=13 frames=10+4294967295*@0xffffffffffffffff,11+0,10+12@0x7f00,11+3* end=depth
pystack id=14 frames=
module id=1 start=0x400000 end=0x500000 base=0x400000 path="/usr/bin/train me" buildid="ab12"
module id=2 start=0x600000 end=0x700000 base=0x0 path="libx.so" buildid="" size=123456 mtime=-5
symbol module=1 address=0x401020 function="inlined<int>" file="/src/a b.h" line=3
symbol module=1 address=0x401020 outer=1 function="main" file="" line=4294967295 start=0x401000
symbol module=0 address=0xffffffffffffffff function="" file="" line=0 start=0x1
thread id=1 tid=4711 name="python3"
device index=0 name="GPU" uuid="GPU-1" total=85899345920
alloc seq=1 time=1200 thread=1 level=driver api=cudaMalloc mem=device device=-1 addr=0x7f5a40000000 size=20971520 status=-3 stack=5 tag=3
alloc seq=3 time=-5 level=200 api=65535 runtime=65534 mem=77 flags=2
mark seq=4 time=9 name=3
flush watermark=3
thread id=1 tid=4711 name="renamed"
map seq=2 flags=1 handle=0xdead
step seq=5 count=18446744073709551615
lost seq=6 count=12
flush watermark=6
end reason="exit" lost_records=1 lost_rings=2 lost_dict=3 events=5 time=-1
`

func TestTextRoundTrip(t *testing.T) {
	file := encode(t, everyLine)
	if got := dump(t, file); got != everyLine {
		t.Errorf("got\n%swant\n%s", got, everyLine)
	}
	if _, r := readAll(t, file); r.Health().LateEvents != 1 || r.Watermark() != 6 {
		t.Errorf("late %d, watermark %d", r.Health().LateEvents, r.Watermark())
	}
}

func TestTextOfStreamRoundTrips(t *testing.T) {
	text := dump(t, encodeTrace(t, trainingStream(5000, 3), 1500))
	if again := dump(t, encode(t, text)); again != text {
		t.Error("text of a stream changes when it is encoded and dumped again")
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
		{"stack end", "stack id=1 frames=0x1 end=soon", `line 1, column 23: end: "soon" is no end of a stack; choose from whole`},
		{"python frame", "pystack id=1 frames=1+2,3", `line 1, column 14: frames: "3": want CODE+OFFSET`},
		{"python self", "pystack id=1 frames=1+2@x", `line 1, column 14: frames: "1+2@x": want CODE+OFFSET`},
		{"line table", "code id=1 table=some", `line 1, column 11: table: "some" is no kind of line table`},
		{"table bytes", "code id=1 lines=8", `line 1, column 11: lines: want pairs of hexadecimal digits`},
		{"flag", "code id=1 modulecall=2", `line 1, column 11: modulecall: "2" is no whole number of 1 bits`},
		{"outer alone", "symbol address=0x5\nsymbol address=0x6 outer=1", `line 2, column 1: outer=1 must follow a symbol of the same module and address`},
		{"start behind", "symbol address=0x5 start=0x6", `line 1, column 1: the function starts behind the address`},
		{"version", "trace version=9", "line 1, column 1: trace format version not supported: the text has version 9"},
		{"after the end", "end\nalloc seq=1", `line 2, column 1: "alloc" after the end line`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := EncodeText(&bytes.Buffer{}, strings.NewReader(c.text))
			var text *TextError
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
	if err := EncodeText(full, strings.NewReader("alloc seq=1")); err == nil {
		t.Error("encoding to a full disk gave no error")
	}
	r, err := NewReader(bytes.NewReader(encode(t, everyLine)), -1)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteText(full, r); err == nil {
		t.Error("dumping to a full disk gave no error")
	}
}

func TestEncodeTextReportsReadError(t *testing.T) {
	f, err := os.Open(filepath.Join(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var text *TextError
	if err := EncodeText(&bytes.Buffer{}, f); err == nil || errors.As(err, &text) {
		t.Errorf("reading a folder as text: %v", err)
	}
}
