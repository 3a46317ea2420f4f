package tables

import (
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

// names are the stacks and frames that were written.
type names struct {
	stacks, frames map[int64]bool
}

func newNames() names { return names{make(map[int64]bool), make(map[int64]bool)} }

// text is a name as Parquet wants it: UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// namer gives ids to the stacks of one trace.
type namer struct {
	set    *analyzer.StackSet
	frames map[symbol.Frame]Frame
}

// frame is what names a frame of the trace. Its id is the same wherever it lies.
func (n *namer) frame(f symbol.Frame) Frame {
	row, known := n.frames[f]
	if !known {
		i := f.Identity(n.set.Place(f))
		row = Frame{Frame: int64(i.Hash()), Function: i.Function, File: i.File, Line: int32(i.Line), Python: i.Python,
			Own: n.set.User(f)}
		n.frames[f] = row
	}
	return row
}

// namedStack is a stack and its frames.
type namedStack struct {
	Stack
	frames []Frame
}

func (n *namer) stack(frames []symbol.Frame) namedStack {
	s := Stack{Frames: make([]int64, len(frames))}
	rows, hashes := make([]Frame, len(frames)), make([]uint64, len(frames))
	for i := range frames {
		rows[i] = n.frame(frames[i])
		s.Frames[i], hashes[i] = rows[i].Frame, uint64(rows[i].Frame)
		if rows[i].Own && s.Function == "" {
			s.Function, s.File, s.Line = rows[i].Function, rows[i].File, rows[i].Line
		}
	}
	s.Stack = int64(symbol.HashStack(hashes))
	return namedStack{s, rows}
}
