package symbol

import (
	"slices"

	"memtrace/trace"
)

// Resolver names the frames of one trace. It is for one goroutine at a time. Frames that it returns belong to it and must not be changed.
type Resolver struct {
	tables  *trace.Tables
	info    trace.Info
	options Options
	loops   []span // code of the Python interpreter's loop, in the process

	native   map[uint64][]Frame
	problems map[string]struct{}
}

// New returns a resolver for the frames of a trace. The tables may still grow; an address is looked up when it is first asked for, when its module has to
// be in the tables.
func New(tables *trace.Tables, info trace.Info, o Options) *Resolver {
	return &Resolver{
		tables:   tables,
		info:     info,
		options:  o,
		loops:    parseSpans(info["python.eval"]),
		native:   make(map[uint64][]Frame),
		problems: make(map[string]struct{}),
	}
}

// Native returns the functions at a return address of a native stack, innermost inlined one first, at least one.
func (r *Resolver) Native(pc uint64) []Frame {
	frames, known := r.native[pc]
	if !known {
		frames = r.look(pc)
		r.native[pc] = frames
	}
	return frames
}

// look resolves the byte before a return address.
func (r *Resolver) look(pc uint64) []Frame {
	at := pc
	if at > 0 {
		at--
	}
	module, ok := r.tables.ModuleAt(at)
	if !ok {
		return []Frame{{Kind: JIT, Address: at}}
	}
	frame := Frame{Module: module.Path, Address: at - module.Base}
	if containsAddress(r.loops, at) {
		frame.Kind = Interpreter
	}
	return []Frame{frame}
}

// Python returns what a frame of a Python stack stands for.
func (r *Resolver) Python(f trace.PyFrame) Frame {
	frame := Frame{Kind: Python, Self: f.Self, Entry: f.Entry}
	code, ok := codeOf(r.tables, f.Code)
	if !ok {
		return frame
	}
	frame.Function = code.QualName
	if frame.Function == "" {
		frame.Function = code.Name
	}
	frame.FullFunction, frame.File, frame.Line = frame.Function, code.File, int(code.FirstLine)
	return frame
}

// codeOf is Tables.Code.
func codeOf(tables any, id trace.CodeID) (trace.Code, bool) {
	if t, ok := tables.(interface {
		Code(trace.CodeID) (trace.Code, bool)
	}); ok {
		return t.Code(id)
	}
	return trace.Code{}, false
}

// problem notes what kept a name from being found, once.
func (r *Resolver) problem(text string) { r.problems[text] = struct{}{} }

// Problems says what kept names from being found so far and what to do, each once, sorted.
func (r *Resolver) Problems() []string {
	var all []string
	for text := range r.problems {
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}
