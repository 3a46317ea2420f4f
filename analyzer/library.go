package analyzer

import (
	"path"

	"memtrace/trace"
)

// unknownLibrary is the number of UnknownLibrary in every libraries.
const unknownLibrary = 0

// libraries resolves stacks to the object file that made the call: the module of the innermost frame, by its base name. A stack is resolved when it is
// first seen, while the modules that were loaded then are the latest ones.
type libraries struct {
	tables *trace.Tables
	names  names
	stacks idIndex
	byNum  []uint32 // library of a stack, by the stack's number
	byPC   map[uint64]uint32
}

func newLibraries(tables *trace.Tables) *libraries {
	l := &libraries{tables: tables, byPC: make(map[uint64]uint32)}
	l.names.intern(UnknownLibrary)
	return l
}

// of returns the number of the library that called the hooked function.
func (l *libraries) of(stack trace.StackID) uint32 {
	if stack == 0 {
		return unknownLibrary
	}
	n, isNew := l.stacks.number(uint64(stack))
	if isNew {
		l.byNum = append(l.byNum, l.resolve(stack))
	}
	return l.byNum[n]
}

func (l *libraries) resolve(stack trace.StackID) uint32 {
	frames := l.tables.Stack(stack)
	if len(frames) == 0 {
		return unknownLibrary
	}
	pc := frames[0] - 1 // inside the call instruction, not behind it
	if known, ok := l.byPC[pc]; ok {
		return known
	}
	n := uint32(unknownLibrary)
	if m, ok := l.tables.ModuleAt(pc); ok && m.Path != "" {
		n = l.names.intern(path.Base(m.Path))
	}
	l.byPC[pc] = n
	return n
}

func (l *libraries) name(n uint32) string { return l.names.list[n] }
