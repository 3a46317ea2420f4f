package importer

import (
	"encoding/binary"
	"fmt"

	"memtrace/trace"
)

// nativeCode gives native frames, which tools print without addresses, addresses in object files that it makes up, and
// collects their names.
type nativeCode struct {
	modules map[string]*nativeModule
	places  map[BuilderFrame]uint64 // return addresses
	symbols []trace.Symbol
}

type nativeModule struct {
	id   trace.ModuleID
	next uint64 // return address
}

const (
	firstModule = 1 << 44
	moduleRoom  = 1 << 32
	codeStep    = 16
	mostModules = 1 << 12
)

// Python is the object file of the interpreter.
const Python = "python"

// otherModule has the code of object files beyond mostModules.
const otherModule = "[others]"

// EvalKey is the fact that holds the addresses of the interpreter's loop.
const EvalKey = "python.eval"

// interpreter is a native stack's placeholder for the Python frames that it runs there.
var interpreter = BuilderFrame{Function: "_PyEval_EvalFrameDefault", Native: true, Module: Python}

// addresses is the native stack of frames, nil if none is native.
func (b *Builder) addresses(frames []BuilderFrame) (list []uint64) {
	native := false
	for i, f := range frames {
		switch {
		case f.Native:
			native = true
			list = append(list, b.address(f))
		case i == 0 || frames[i-1].Native:
			list = append(list, b.address(interpreter))
		}
	}
	if !native {
		return nil
	}
	return list
}

// address is the return address of a native frame, the same one for the same frame.
func (b *Builder) address(f BuilderFrame) uint64 {
	f.File, f.Function, f.Module = clip(f.File), clip(f.Function), clip(f.Module)
	n := &b.native
	at, known := n.places[f]
	if known {
		return at
	}
	if n.places == nil {
		n.places, n.modules = map[BuilderFrame]uint64{}, map[string]*nativeModule{}
	}
	m := b.module(f.Module)
	at, m.next = m.next, m.next+codeStep
	n.places[f] = at
	n.symbols = append(n.symbols, trace.Symbol{Module: m.id, Address: at,
		Frames: []trace.SymbolFrame{{Function: f.Function, File: f.File, Line: uint32(max(f.Line, 0))}}})
	if f == interpreter {
		b.keep(b.out.WriteInfo(trace.Info{EvalKey: fmt.Sprintf("%x-%x", at-1, at)}))
	}
	return at
}

func (b *Builder) module(path string) *nativeModule {
	n := &b.native
	m := n.modules[path]
	if m == nil && len(n.modules) >= mostModules {
		path = otherModule
		m = n.modules[path]
	}
	if m == nil {
		start := firstModule + uint64(len(n.modules))*moduleRoom
		m = &nativeModule{id: trace.ModuleID(b.id()), next: start + codeStep}
		n.modules[path] = m
		b.keep(b.out.WriteModule(trace.Module{ID: m.id, Start: start, End: start + moduleRoom, Base: start,
			Path: path}))
	}
	return m
}

func (b *Builder) nativeStack(addresses []uint64) trace.StackID {
	if len(addresses) == 0 {
		return 0
	}
	stack := trace.Stack{Frames: addresses}
	if len(addresses) > trace.MaxFrames {
		stack.Frames, stack.End = addresses[:trace.MaxFrames], trace.StackDepth
	}
	b.key = append(b.key[:0], 'n')
	for _, at := range stack.Frames {
		b.key = binary.AppendUvarint(b.key, at)
	}
	id, known := b.stack()
	if !known {
		stack.ID = id
		b.keep(b.out.WriteStack(stack))
	}
	return id
}
