package callstack

import "memtrace/internal/symbol"

// nativeCall is the functions at one address of a native stack, inlined ones included, innermost first.
type nativeCall []*Frame

// interprets reports whether the address is in the loop of the Python interpreter. Its physical function is last.
func (n nativeCall) interprets() bool {
	return len(n) > 0 && n[len(n)-1].Kind == symbol.Interpreter
}

// mergeStacks joins the two call stacks of one event, innermost frame first.
//
// A truncated native stack ends with the innermost activation of the interpreter's loop, which the Python stack
// replaces. In a complete one, every activation of the loop is replaced by the Python frames that it ran: those up to
// the next one through which C code entered the interpreter. Up to CPython 3.10 that is one frame, since every Python
// call is an activation of its own; from 3.11 on Python functions that call each other share one. Frames without a
// counterpart, because the other stack ends early, are kept: Python frames at the end, activations as native frames.
func mergeStacks(native []nativeCall, cut bool, python []*Frame) []*Frame {
	merged := make([]*Frame, 0, len(native)+len(python))
	if cut && len(python) > 0 && len(native) > 0 {
		native = native[:len(native)-1]
		for _, call := range native {
			merged = append(merged, call...)
		}
		return append(merged, python...)
	}
	for _, call := range native {
		if !call.interprets() || len(python) == 0 {
			merged = append(merged, call...)
			continue
		}
		ran := pythonRun(python)
		merged = append(merged, python[:ran]...)
		python = python[ran:]
	}
	return append(merged, python...)
}

// pythonRun returns how many frames, from the innermost one on, one activation of the interpreter's loop ran.
func pythonRun(python []*Frame) int {
	for i, f := range python {
		if f.Entry {
			return i + 1
		}
	}
	return len(python)
}
