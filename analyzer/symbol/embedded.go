package symbol

import (
	"memtrace/trace"
)

// embedded returns what the trace itself says of an address; nil if nothing.
func (r *Resolver) embedded(p place) []Frame {
	symbols, ok := r.tables.Symbol(p.module.ID, p.pc)
	if !ok || len(symbols) == 0 {
		return nil
	}
	frames := make([]Frame, len(symbols))
	for i, s := range symbols {
		f := Frame{FullFunction: s.Function, File: s.File, Line: int(s.Line), Module: p.module.Path, Address: p.address, Inlined: i < len(symbols)-1}
		f.Function = short(s.Function)
		if s.Start != 0 {
			f.Start = s.Start - p.module.Base
		}
		if p.module.ID == 0 {
			f.Kind = JIT
		}
		frames[i] = f
	}
	return frames
}

// Collect returns what is to be written into a trace so that it can be read without the object files: the names of every code address of its native stacks that
// has one. It reads tables as far as they go, and the files by way of the resolver.
func Collect(tables *trace.Tables, r *Resolver) []trace.Symbol {
	pcs := tables.CodeAddresses()
	r.Warm(pcs)
	symbols := make([]trace.Symbol, 0, len(pcs))
	for _, pc := range pcs {
		module, _ := tables.ModuleAt(max(pc, 1) - 1)
		s := trace.Symbol{Module: module.ID, Address: pc}
		for _, f := range r.Native(pc) {
			frame := trace.SymbolFrame{Function: limited(f.FullFunction), File: limited(f.File), Line: uint32(f.Line)}
			if f.Start != 0 && !f.Inlined {
				frame.Start = f.Start + module.Base
			}
			if len(s.Frames) < trace.MaxSymbolFrames && frame != (trace.SymbolFrame{}) {
				s.Frames = append(s.Frames, frame)
			}
		}
		if len(s.Frames) > 0 {
			symbols = append(symbols, s)
		}
	}
	return symbols
}

// limited cuts a text to what a trace can hold.
func limited(text string) string { return text[:min(len(text), trace.MaxString)] }
