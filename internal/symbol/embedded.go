package symbol

import (
	"slices"

	"memtrace/trace"
)

// embedded returns the frames that the trace itself contains for an address; nil if none.
func (r *Resolver) embedded(p place) []Frame {
	raw := r.tables.RawAddress(p.pc)
	symbols, ok := r.tables.Symbol(p.module.ID, raw)
	if !ok || len(symbols) == 0 {
		return nil
	}
	frames := make([]Frame, len(symbols))
	for i, s := range symbols {
		f := Frame{FullFunction: s.Function, File: s.File, Line: int(s.Line), Module: p.module.Path, Address: p.address,
			Inlined: i < len(symbols)-1}
		f.Function = short(s.Function)
		if s.Start != 0 {
			f.Start = s.Start + (p.pc - raw) - p.module.Base
		}
		if p.module.ID == 0 {
			f.Kind = compiledKind(s.Function)
		}
		frames[i] = f
	}
	return frames
}

// Collect returns the symbols to be embedded in a trace so that it can be read without the object files: the names of
// every code address of its native stacks that has one and is not yet named in the trace. It reads the tables as they
// are now, and the files through the resolver.
func Collect(tables *trace.Tables, r *Resolver) []trace.Symbol {
	pcs := unnamed(tables)
	r.Warm(pcs)
	symbols := make([]trace.Symbol, 0, len(pcs))
	for _, pc := range pcs {
		if s, ok := r.symbol(pc); ok {
			symbols = append(symbols, s)
		}
	}
	return symbols
}

// CollectInside does the same as Collect in a process that records itself: one object file at a time, without mapping
// any or keeping any open, with little debug information and no cache. It stops when stop returns true; whole is false
// then.
func CollectInside(tables *trace.Tables, info trace.Info, stop func() bool) (symbols []trace.Symbol, whole bool) {
	r := New(tables, info, Options{careful: true})
	r.warmed = true
	defer r.Close()
	var before trace.Module
	for _, pc := range unnamed(tables) { // ascending: those of one object file are consecutive
		if stop() {
			return symbols, false
		}
		if module, ok := tables.ModuleAt(max(pc, 1) - 1); ok && keyOf(module) != keyOf(before) {
			r.Close()
			before = module
		}
		if s, ok := r.symbol(pc); ok {
			symbols = append(symbols, s)
		}
	}
	return symbols, true
}

// unnamed returns the code addresses that the trace itself does not name.
func unnamed(tables *trace.Tables) []uint64 {
	return slices.DeleteFunc(tables.CodeAddresses(), func(pc uint64) bool {
		module, _ := tables.ModuleAt(max(pc, 1) - 1)
		_, known := tables.Symbol(module.ID, tables.RawAddress(pc))
		return known
	})
}

// symbol returns the symbol of an address in the form of a trace; ok is false if nothing is known.
func (r *Resolver) symbol(pc uint64) (s trace.Symbol, ok bool) {
	module, _ := r.tables.ModuleAt(max(pc, 1) - 1)
	raw := r.tables.RawAddress(pc)
	s = trace.Symbol{Module: module.ID, Address: raw}
	for _, f := range r.Native(pc) {
		frame := trace.SymbolFrame{Function: limited(f.FullFunction), File: limited(f.File), Line: uint32(f.Line)}
		if f.Start != 0 && !f.Inlined {
			frame.Start = f.Start + module.Base - (pc - raw)
		}
		if len(s.Frames) < trace.MaxSymbolFrames && frame != (trace.SymbolFrame{}) {
			s.Frames = append(s.Frames, frame)
		}
	}
	return s, len(s.Frames) > 0
}

// limited cuts a text to the length allowed in a trace, far beyond readable names.
func limited(text string) string { return text[:min(len(text), maxEmbeddedText)] }

const maxEmbeddedText = 16 << 10
