package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// PyFrame is one frame of a Python stack.
type PyFrame struct {
	Code   CodeID
	Offset uint32 // of the instruction, bytes into the code object's bytecode
	Entry  bool   // C code entered the interpreter with this frame: native frames lie between it and the next outer one
	Self   uint64 // address of the object that is called, for frames that call a framework's modules; else 0
}

// PyStack is an interned Python call stack, innermost frame first.
type PyStack struct {
	ID     StackID
	Frames []PyFrame
	End    StackEnd
}

// appendPyStack writes frames with values of their own, not as differences: the outer frames that stacks share are then
// the same bytes.
func (e *entryEncoder) appendPyStack(dst []byte, s PyStack) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(s.ID))
	body = binary.AppendUvarint(body, uint64(s.End))
	body = binary.AppendUvarint(body, uint64(len(s.Frames)))
	for _, f := range s.Frames {
		where := uint64(f.Offset) << 1
		if f.Entry {
			where |= 1
		}
		body = binary.AppendUvarint(body, uint64(f.Code))
		body = binary.AppendUvarint(body, where)
		body = binary.AppendUvarint(body, f.Self)
	}
	return e.finish(dst, entryPyStack, body)
}

func (e *entryDecoder) pyStack(d *decoder) {
	s := PyStack{ID: StackID(d.id()), End: d.stackEnd()}
	n := d.uvarint()
	if n > MaxFrames || 3*n > uint64(len(d.data)) { // a frame takes at least three bytes
		d.fail()
		return
	}
	e.pyframes = e.pyframes[:0]
	for range n {
		code, where, self := d.id(), d.uvarint(), d.uvarint()
		if where>>1 > 1<<32-1 {
			d.fail()
		}
		e.pyframes = append(e.pyframes, PyFrame{Code: CodeID(code), Offset: uint32(where >> 1), Entry: where&1 != 0, Self: self})
	}
	s.Frames = e.pyframes
	if !d.failed {
		e.tables.AddPyStack(s)
	}
}

// WritePyStack defines a Python call stack. The code objects of its frames need not have been defined before it.
func (w *Writer) WritePyStack(s PyStack) error {
	if err := w.usable(); err != nil {
		return err
	}
	if len(s.Frames) > MaxFrames {
		return fmt.Errorf("write trace: Python stack of %d frames, at most %d are allowed", len(s.Frames), MaxFrames)
	}
	return w.entryAdded(w.entries.appendPyStack(w.dictionary, s))
}

// A frame's text is code+offset, then "*" where C code entered the interpreter, then "@" and the object's address where
// it is known.
func appendPyFrame(dst []byte, f PyFrame) []byte {
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

func (t *textWriter) pyStack(s PyStack) {
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
func (t *textWriter) stackEnd(end StackEnd) {
	if end != StackWhole {
		t.name("end")
		t.line = append(t.line, end.String()...)
	}
}

func (r *argReader) stackEnd(name string) StackEnd {
	a, ok := r.find(name)
	if !ok {
		return StackWhole
	}
	end, ok := ParseStackEnd(a.value)
	if !ok || a.quoted {
		r.fail(a, "%s: %q is no end of a stack; choose from %s", name, a.value, strings.Join(stackEndNames[:], ", "))
	}
	return end
}

var errPyFrame = errors.New("want CODE+OFFSET, with * where C entered the interpreter and @ADDRESS of the object")

func parsePyFrame(text string) (f PyFrame, err error) {
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
	f.Code, f.Offset = CodeID(id), uint32(at)
	return f, nil
}

func (r *argReader) pyFrames(name string) []PyFrame {
	a, ok := r.find(name)
	if !ok || a.value == "" {
		return nil
	}
	var frames []PyFrame
	for part := range strings.SplitSeq(a.value, ",") {
		f, err := parsePyFrame(part)
		if err != nil || a.quoted {
			r.fail(a, "%s: %q: %v", name, part, errPyFrame)
		}
		frames = append(frames, f)
	}
	return frames
}

func parsePyStack(p *textParser) error {
	r := argReader{p: p}
	s := PyStack{ID: StackID(r.number("id", 32)), Frames: r.pyFrames("frames"), End: r.stackEnd("end")}
	return r.finish(func() error { return p.out.WritePyStack(s) })
}
