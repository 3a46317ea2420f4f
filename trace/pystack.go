package trace

import (
	"encoding/binary"
	"fmt"
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
