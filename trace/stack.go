package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// StackEnd is why a stack ends where it does. Numbers are append-only and are written to disk.
type StackEnd uint8

// The ends of stacks.
const (
	StackWhole StackEnd = 0 // its outermost frame was reached
	// native: cut at the innermost frame of the Python interpreter; the Python stack goes on from there
	StackInterpreter StackEnd = 1
	StackDepth       StackEnd = 2 // as deep as requested
	StackNoRow       StackEnd = 3 // code without unwind information: compiled at run time, or Go
	StackUnsupported StackEnd = 4 // a rule that the unwinder does not follow
	StackBounds      StackEnd = 5 // the next frame would be outside the thread's stack
	StackUnreadable  StackEnd = 6 // Python: what should be a frame does not look like one
	StackCaller      StackEnd = 7 // only the caller was requested
)

var stackEndNames = [...]string{"whole", "interpreter", "depth", "norow", "unsupported", "bounds", "unreadable",
	"caller"}

// String returns the end's name as it appears in the text form, or its number where this version has no name for it.
func (e StackEnd) String() string {
	if int(e) < len(stackEndNames) {
		return stackEndNames[e]
	}
	return strconv.Itoa(int(e))
}

// StackEndNames lists the names that this version has, by number.
func StackEndNames() []string { return stackEndNames[:] }

// ParseStackEnd is the inverse of String.
func ParseStackEnd(s string) (StackEnd, bool) {
	if i := slices.Index(stackEndNames[:], s); i >= 0 {
		return StackEnd(i), true
	}
	n, err := strconv.ParseUint(s, 0, 8)
	return StackEnd(n), err == nil
}

// Stack is an interned native call stack. Frames are code addresses, innermost first; all are return addresses, so a
// symbolizer looks up PC-1.
type Stack struct {
	ID     StackID
	Frames []uint64
	End    StackEnd
}

// PyFrame is one frame of a Python stack.
type PyFrame struct {
	Code   CodeID
	Offset uint32 // of the instruction, bytes into the code object's bytecode
	Entry  bool   // C code entered the interpreter with this frame: native frames are between it and the next outer one
	Self   uint64 // address of the object that is called, for frames that call a framework's modules; else 0
}

// BeforeFunction in BeforeFile is the Python frame of memory that was there when recording began: who allocated that is
// not known. The adapters' script snapshot.py has a function of this name.
const (
	BeforeFunction = "_record_before"
	BeforeFile     = "<memtrace>"
)

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
		e.pyframes = append(e.pyframes, PyFrame{Code: CodeID(code), Offset: uint32(where >> 1), Entry: where&1 != 0,
			Self: self})
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

// CodeID names a Python code object.
type CodeID uint32

// LineTable is the format of a code object's line table. Numbers are append-only and are written to disk.
type LineTable uint8

// The kinds of line tables.
const (
	LinesNone      LineTable = 0 // there is none
	LinesLnotab    LineTable = 1 // CPython to 3.9: co_lnotab
	LinesRanges    LineTable = 2 // CPython 3.10: co_linetable of pairs
	LinesLocations LineTable = 3 // CPython from 3.11: co_linetable of location entries
)

var lineTableNames = [...]string{"none", "lnotab", "ranges", "locations"}

// String returns the kind's name as it appears in the text form, or its number where this version has no name for it.
func (l LineTable) String() string {
	if int(l) < len(lineTableNames) {
		return lineTableNames[l]
	}
	return strconv.Itoa(int(l))
}

// ParseLineTable is the inverse of String.
func ParseLineTable(s string) (LineTable, bool) {
	if i := slices.Index(lineTableNames[:], s); i >= 0 {
		return LineTable(i), true
	}
	n, err := strconv.ParseUint(s, 0, 8)
	return LineTable(n), err == nil
}

// Code is a Python code object.
type Code struct {
	ID             CodeID
	Name, QualName string // QualName is empty before CPython 3.11
	File           string
	FirstLine      int32
	Table          LineTable
	Lines          []byte // as Python keeps it
	ModuleCall     bool   // its first argument is the module that is called
}

// codeModuleCall is the flag of an entry whose code calls a framework's modules.
const codeModuleCall = 1

func (e *entryEncoder) appendCode(dst []byte, c Code) []byte {
	body := binary.AppendUvarint(e.body[:0], uint64(c.ID))
	body = binary.AppendUvarint(body, zigzag(int64(c.FirstLine)))
	body = binary.AppendUvarint(body, uint64(c.Table))
	flags := uint64(0)
	if c.ModuleCall {
		flags = codeModuleCall
	}
	body = binary.AppendUvarint(body, flags)
	body = appendText(appendText(appendText(body, c.Name), c.QualName), c.File)
	body = binary.AppendUvarint(body, uint64(len(c.Lines)))
	return e.finish(dst, entryCode, append(body, c.Lines...))
}

func (e *entryDecoder) code(d *decoder) {
	c := Code{ID: CodeID(d.id())}
	line := unzigzag(d.uvarint())
	c.FirstLine, c.Table = int32(line), LineTable(d.octet())
	c.ModuleCall = d.uvarint()&codeModuleCall != 0
	c.Name, c.QualName, c.File = d.text(MaxString), d.text(MaxString), d.text(MaxString)
	n := d.uvarint()
	if n > MaxLineTable || int64(c.FirstLine) != line {
		d.fail()
	}
	c.Lines = d.bytes(n)
	if !d.failed {
		e.tables.AddCode(c)
	}
}

// WriteCode defines a Python code object.
func (w *Writer) WriteCode(c Code) error {
	if err := errors.Join(w.usable(), tooLong("name or file of a Python code object", c.Name, c.QualName,
		c.File)); err != nil {
		return err
	}
	if len(c.Lines) > MaxLineTable {
		return fmt.Errorf("write trace: line table of %d bytes, at most %d are allowed", len(c.Lines), MaxLineTable)
	}
	return w.entryAdded(w.entries.appendCode(w.dictionary, c))
}
