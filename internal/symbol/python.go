package symbol

import (
	"memtrace/trace"
)

// codePlace is an instruction of a Python code object.
type codePlace struct {
	code   trace.CodeID
	offset uint32
}

// Python returns the frame of a Python stack's entry. Its line is the running one, or the function's first if the line
// table has none.
func (r *Resolver) Python(f trace.PyFrame) Frame {
	place := codePlace{f.Code, f.Offset}
	frame, known := r.python[place]
	if !known {
		frame = r.pythonFrame(place)
		r.python[place] = frame
	}
	frame.Self, frame.Entry = f.Self, f.Entry
	return frame
}

func (r *Resolver) pythonFrame(place codePlace) Frame {
	code, ok := r.tables.Code(place.code)
	if !ok {
		return Frame{Kind: Python}
	}
	name := code.QualName
	if name == "" {
		name = code.Name
	}
	frame := Frame{Kind: Python, Function: name, FullFunction: name, File: code.File, Line: int(code.FirstLine)}
	if line, ok := trace.DecodeLine(code.Table, code.Lines, code.FirstLine, place.offset); ok {
		frame.Line = int(line)
	}
	frame.Compiled = r.compiled(frame.File, frame.Line)
	return frame
}
