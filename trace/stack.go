package trace

// StackEnd says why a stack ends where it does. Numbers are append-only and are written to disk.
type StackEnd uint8

// The ends of stacks.
const (
	StackWhole       StackEnd = 0 // its outermost frame was reached
	StackInterpreter StackEnd = 1 // native: cut at the innermost frame of the Python interpreter; the Python stack goes on from there
	StackDepth       StackEnd = 2 // as deep as was asked for
	StackNoRow       StackEnd = 3 // code without unwind information: compiled at run time, or Go
	StackUnsupported StackEnd = 4 // a rule that the unwinder does not follow
	StackBounds      StackEnd = 5 // the next frame would lie outside of the thread's stack
	StackUnreadable  StackEnd = 6 // Python: what should be a frame does not look like one
	StackCaller      StackEnd = 7 // only the caller was asked for
)

// Stack is an interned native call stack. Frames are code addresses, innermost first; all are return addresses, so a symbolizer looks up PC-1.
type Stack struct {
	ID     StackID
	Frames []uint64
	End    StackEnd
}

// CodeID names a Python code object.
type CodeID uint32

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

// LineTable says how a code object's line table is written. Numbers are append-only and are written to disk.
type LineTable uint8

// The kinds of line tables.
const (
	LinesNone      LineTable = 0 // there is none
	LinesLnotab    LineTable = 1 // CPython to 3.9: co_lnotab
	LinesRanges    LineTable = 2 // CPython 3.10: co_linetable of pairs
	LinesLocations LineTable = 3 // CPython from 3.11: co_linetable of location entries
)

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
