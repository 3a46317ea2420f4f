package textform

import (
	"encoding/hex"
	"errors"
	"strconv"
	"strings"

	"memtrace/trace"
)

// A frame's text is code+offset, then "*" where C code entered the interpreter, then "@" and the object's address where
// it is known.
func appendPyFrame(dst []byte, f trace.PyFrame) []byte {
	dst = strconv.AppendUint(dst, uint64(f.Code), 10)
	dst = append(dst, '+')
	dst = strconv.AppendUint(dst, uint64(f.Offset), 10)
	if f.Entry {
		dst = append(dst, '*')
	}
	if f.Self != 0 {
		dst = appendHex(append(dst, '@'), f.Self)
	}
	return dst
}

func (t *writer) stack(s trace.Stack) {
	t.line = append(t.line, "stack"...)
	t.number("id", uint64(s.ID))
	t.line = append(t.line, " frames="...)
	for i, pc := range s.Frames {
		if i > 0 {
			t.line = append(t.line, ',')
		}
		t.line = appendHex(t.line, pc)
	}
	t.stackEnd(s.End)
}

func (t *writer) pyStack(s trace.PyStack) {
	t.line = append(t.line, "pystack"...)
	t.number("id", uint64(s.ID))
	t.name("frames")
	for i, f := range s.Frames {
		if i > 0 {
			t.line = append(t.line, ',')
		}
		t.line = appendPyFrame(t.line, f)
	}
	t.stackEnd(s.End)
}

// stackEnd writes why a stack ends, unless it is whole.
func (t *writer) stackEnd(end trace.StackEnd) {
	if end != trace.StackWhole {
		t.name("end")
		t.line = append(t.line, end.String()...)
	}
}

func (r *argReader) stackEnd(name string) trace.StackEnd {
	a, ok := r.find(name)
	if !ok {
		return trace.StackWhole
	}
	end, ok := trace.ParseStackEnd(a.value)
	if !ok || a.quoted {
		r.fail(a, "%s: %q is no end of a stack; choose from %s", name, a.value,
			strings.Join(trace.StackEndNames(), ", "))
	}
	return end
}

var errPyFrame = errors.New("want CODE+OFFSET, with * where C entered the interpreter and @ADDRESS of the object")

func parsePyFrame(text string) (f trace.PyFrame, err error) {
	text, self, hasSelf := strings.Cut(text, "@")
	if hasSelf {
		if f.Self, err = strconv.ParseUint(self, 0, 64); err != nil {
			return f, errPyFrame
		}
	}
	text, f.Entry = strings.CutSuffix(text, "*")
	code, offset, found := strings.Cut(text, "+")
	id, errCode := strconv.ParseUint(code, 0, 32)
	at, errAt := strconv.ParseUint(offset, 0, 32)
	if !found || errCode != nil || errAt != nil {
		return f, errPyFrame
	}
	f.Code, f.Offset = trace.CodeID(id), uint32(at)
	return f, nil
}

func (r *argReader) pyFrames(name string) []trace.PyFrame {
	a, ok := r.find(name)
	if !ok || a.value == "" {
		return nil
	}
	var frames []trace.PyFrame
	for part := range strings.SplitSeq(a.value, ",") {
		f, err := parsePyFrame(part)
		if err != nil || a.quoted {
			r.fail(a, "%s: %q: %v", name, part, errPyFrame)
		}
		frames = append(frames, f)
	}
	return frames
}

func parsePyStack(p *parser) error {
	r := argReader{p: p}
	s := trace.PyStack{ID: trace.StackID(r.number("id", 32)), Frames: r.pyFrames("frames"), End: r.stackEnd("end")}
	return r.finish(func() error { return p.out.WritePyStack(s) })
}

func (t *writer) code(c trace.Code) {
	t.line = append(t.line, "code"...)
	t.number("id", uint64(c.ID))
	t.quoted("name", c.Name)
	t.quoted("qualname", c.QualName)
	t.quoted("file", c.File)
	t.signed("line", int64(c.FirstLine))
	t.name("table")
	t.line = append(t.line, c.Table.String()...)
	if len(c.Lines) > 0 {
		t.name("lines")
		t.line = hex.AppendEncode(t.line, c.Lines)
	}
	if c.ModuleCall {
		t.number("modulecall", 1)
	}
}

func (r *argReader) lineTable(name string) trace.LineTable {
	a, ok := r.find(name)
	if !ok {
		return trace.LinesNone
	}
	kind, ok := trace.ParseLineTable(a.value)
	if !ok || a.quoted {
		r.fail(a, "%s: %q is no kind of line table", name, a.value)
	}
	return kind
}

func (r *argReader) hexBytes(name string) []byte {
	a, ok := r.find(name)
	if !ok {
		return nil
	}
	b, err := hex.DecodeString(a.value)
	if err != nil || a.quoted {
		r.fail(a, "%s: want pairs of hexadecimal digits", name)
	}
	return b
}

func parseCode(p *parser) error {
	r := argReader{p: p}
	c := trace.Code{ID: trace.CodeID(r.number("id", 32)), Name: r.text("name"), QualName: r.text("qualname"),
		File: r.text("file"), FirstLine: int32(r.signed("line", 32)),
		Table: r.lineTable("table"), Lines: r.hexBytes("lines"), ModuleCall: r.number("modulecall", 1) != 0}
	return r.finish(func() error { return p.out.WriteCode(c) })
}
