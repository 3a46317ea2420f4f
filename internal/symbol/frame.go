package symbol

import (
	"fmt"
	"path/filepath"
)

// Kind is the kind of code of a frame.
type Kind uint8

// The kinds of frames.
const (
	Native      Kind = iota
	Python           // a frame of the Python interpreter's own stack
	Interpreter      // a native frame that runs Python code: its Python frames are in the Python stack
	JIT              // native code outside of every module
)

// Frame is one function of a stack, readable.
type Frame struct {
	Kind Kind
	// C++ and Rust without parameters and with long template arguments elided; Python: the qualified name, else the
	// name; "" unknown
	Function string
	File     string // source file; "" unknown
	Line     int    // in File; 0 unknown
	Module   string // path of the object file; "" for Python and JIT
	Address  uint64 // of the call, inside the object file, as for addr2line; for JIT the address in the process
	Start    uint64 // of the function, inside the object file, by its symbol or its unwind entry; 0 unknown
	Inlined  bool   // into the frame that follows
	Self     uint64 // Python: the object of the call, for calls of a framework's modules; else 0
	Entry    bool   // Python: C code entered the interpreter with this frame

	Compiled string // Python code that Inductor made: the operators that the line computes; "" unknown

	FullFunction string // Function with everything that was elided from it
}

// Name is the displayed name: the function; else the object file and the function's start in it, so that all addresses
// of one function share a name.
func (f Frame) Name() string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Kind == Python:
		return "?"
	case f.Module == "":
		return fmt.Sprintf("[jit] %#x", f.Address)
	case f.Start != 0:
		return fmt.Sprintf("%s+%#x", filepath.Base(f.Module), f.Start)
	}
	return fmt.Sprintf("%s+%#x", filepath.Base(f.Module), f.Address)
}
