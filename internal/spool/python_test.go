package spool

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"memtrace/trace"
)

// codeEntry lays out a code entry as the recorder does, with a line table of two bytes.
func codeEntry(nameWidth uint8, name string, qualNameWidth uint8, qualName string, fileWidth uint8, file string,
	line int32) []byte {
	head := make([]byte, codeSize)
	binary.LittleEndian.PutUint32(head[codeFirstLine:], uint32(line))
	head[codeTable], head[codeModuleCall] = byte(trace.LinesLocations), 1
	head[codeNameWidth], head[codeQualNameWidth], head[codeFileWidth] = nameWidth, qualNameWidth, fileWidth
	var texts []byte
	for _, text := range []struct {
		at    int
		width uint8
		text  string
	}{{codeNameBytes, nameWidth, name}, {codeQualNameBytes, qualNameWidth, qualName},
		{codeFileBytes, fileWidth, file}} {
		units := pythonUnits(text.width, []rune(text.text)...)
		binary.LittleEndian.PutUint32(head[text.at:], uint32(len(units)))
		texts = append(texts, units...)
	}
	binary.LittleEndian.PutUint32(head[codeTableBytes:], 2)
	return append(append(head, texts...), 0x80, 0)
}

// pythonUnits writes characters as Python keeps them.
func pythonUnits(width uint8, characters ...rune) (b []byte) {
	for _, c := range characters {
		b = append(b, binary.LittleEndian.AppendUint32(nil, uint32(c))[:width]...)
	}
	return b
}

func pyStackEntry(end trace.StackEnd, frames ...trace.PyFrame) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(end))
	for _, f := range frames {
		where := f.Offset << 1
		if f.Entry {
			where |= 1
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(f.Code))
		b = binary.LittleEndian.AppendUint32(b, where)
		b = binary.LittleEndian.AppendUint64(b, f.Self)
	}
	return b
}

// checkSmallPython checks the Python entries of whole.
func checkSmallPython(t *testing.T, tables *trace.Tables) {
	t.Helper()
	code, ok := tables.Code(7)
	want := trace.Code{ID: 7, Name: "f", QualName: "A.f", File: "/a.py", FirstLine: 10, Table: trace.LinesLocations,
		Lines: []byte{0x80, 0}, ModuleCall: true}
	if !ok || !reflect.DeepEqual(code, want) {
		t.Errorf("code %+v, want %+v", code, want)
	}
	frames, end := tables.PyStack(8)
	if !reflect.DeepEqual(frames, []trace.PyFrame{{Code: 7, Offset: 34, Entry: true, Self: 1 << 40},
		{Code: 7, Offset: 8}}) || end != trace.StackUnreadable {
		t.Errorf("Python stack %+v, end %v", frames, end)
	}
}

func TestPythonTexts(t *testing.T) {
	cases := []struct {
		name  string
		width uint8
		units []byte
		want  string
	}{
		{"ascii", 1, []byte("train.py"), "train.py"},
		{"latin-1", 1, []byte{'n', 0xe9, 0xff}, "n\u00e9\u00ff"},
		{"two bytes", 2, pythonUnits(2, 'x', 0x4e2d, 0xfffd), "x\u4e2d\ufffd"},
		{"four bytes", 4, pythonUnits(4, 'x', 0x1f600), "x\U0001f600"},
		{"lone surrogates", 2, pythonUnits(2, 'a', 0xdc80, 0xd800, 'b'), "a\ufffd\ufffdb"},
		{"surrogates in four bytes", 4, pythonUnits(4, 0xd83d, 0xde00), "\ufffd\ufffd"},
		{"beyond Unicode", 4, []byte{255, 255, 255, 255, 0, 0, 0x11, 0}, "\ufffd\ufffd"},
		{"half a character", 4, append(pythonUnits(4, 'x'), 'y', 0), "x"},
		{"no width", 3, []byte("abc"), "\ufffd"},
		{"nothing", 0, nil, ""},
	}
	for _, c := range cases {
		if got := pythonText(c.units, c.width); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What is longer than a trace may hold is cut, or the recorder could not write the trace any further.
func TestOversizedPythonEntries(t *testing.T) {
	long := strings.Repeat("\u00e9", trace.MaxString)
	var tables trace.Tables
	out := tableFiller{&tables, nil}
	if err := passCode(out, 1, codeEntry(1, long, 2, long, 4, long, 1)); err != nil {
		t.Fatal(err)
	}
	table := codeEntry(1, "f", 1, "", 1, "", 1)
	binary.LittleEndian.PutUint32(table[codeTableBytes:], trace.MaxLineTable+1)
	if err := passCode(out, 2, append(table, make([]byte, trace.MaxLineTable+1)...)); err != nil {
		t.Fatal(err)
	}
	frames := make([]trace.PyFrame, trace.MaxFrames+1)
	if err := passPyStack(out, 3, pyStackEntry(trace.StackWhole, frames...)); err != nil {
		t.Fatal(err)
	}
	c, _ := tables.Code(1)
	for _, text := range []string{c.Name, c.QualName, c.File} {
		if len(text) > trace.MaxString || len(text) < trace.MaxString-4 || !strings.HasPrefix(long, text) {
			t.Errorf("a text of %d bytes is kept with %d", len(long), len(text))
		}
	}
	if c, ok := tables.Code(2); !ok || c.Name != "f" || c.Table != trace.LinesNone || len(c.Lines) != 0 {
		t.Errorf("code %q with a table of kind %v, %d bytes", c.Name, c.Table, len(c.Lines))
	}
	if frames, end := tables.PyStack(3); len(frames) != trace.MaxFrames || end != trace.StackDepth {
		t.Errorf("%d frames, end %v", len(frames), end)
	}
}
