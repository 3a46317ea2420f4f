package callstack

import (
	"path"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// UnknownLibrary is the number of report.UnknownLibrary in every Libraries.
const UnknownLibrary = 0

// Libraries resolves stacks to the object file that made the call: the module of the innermost frame, by its base name.
// A stack is resolved when it is first seen, while the modules that were loaded then are the latest ones.
type Libraries struct {
	tables *trace.Tables
	names  heap.Names
	stacks heap.IDIndex
	byNum  []uint32 // library of a stack, by the stack's number
	byPC   map[uint64]uint32
}

func NewLibraries(tables *trace.Tables) *Libraries {
	l := &Libraries{tables: tables, byPC: make(map[uint64]uint32)}
	l.names.Intern(report.UnknownLibrary)
	return l
}

// Of returns the number of the library that called the hooked function.
func (l *Libraries) Of(stack trace.StackID) uint32 {
	if stack == 0 {
		return UnknownLibrary
	}
	n, isNew := l.stacks.Number(uint64(stack))
	if isNew {
		l.byNum = append(l.byNum, l.resolve(stack))
	}
	return l.byNum[n]
}

func (l *Libraries) resolve(stack trace.StackID) uint32 {
	frames := l.tables.Stack(stack)
	if len(frames) == 0 {
		return UnknownLibrary
	}
	pc := frames[0] - 1 // inside the call instruction, not after it
	if known, ok := l.byPC[pc]; ok {
		return known
	}
	n := uint32(UnknownLibrary)
	if m, ok := l.tables.ModuleAt(pc); ok && m.Path != "" {
		n = l.names.Intern(path.Base(m.Path))
	}
	l.byPC[pc] = n
	return n
}

// Pool returns the number of a pool of the program that, like a library, holds driver memory.
func (l *Libraries) Pool(name string) uint32 { return l.names.Intern(report.PoolOwner(name)) }

func (l *Libraries) Name(n uint32) string { return l.names.List[n] }
