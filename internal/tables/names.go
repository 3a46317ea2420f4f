package tables

import (
	"encoding/binary"
	"hash/fnv"
	"strings"

	"memtrace/analyzer"
	"memtrace/internal/symbol"
)

// names are the stacks and frames that were written.
type names struct {
	stacks, frames map[int64]bool
}

func newNames() names { return names{make(map[int64]bool), make(map[int64]bool)} }

// frameID is the 64-bit FNV-1a hash of what names a frame: function, file as StackSet.Place has it, line, and whether
// it is Python's. Addresses and folders, which differ between machines, do not count; a native function without a
// symbol is named by its object file and where it begins in that.
func frameID(f *Frame) int64 {
	h := fnv.New64a()
	h.Write([]byte(f.Function))
	h.Write([]byte{0})
	h.Write([]byte(f.File))
	rest := []byte{0, 0}
	if f.Python {
		rest[1] = 1
	}
	h.Write(binary.LittleEndian.AppendUint32(rest, uint32(f.Line)))
	return int64(h.Sum64())
}

// stackID is the 64-bit FNV-1a hash of a stack's frames, innermost first, eight bytes of each; 0 without frames.
func stackID(frames []int64) int64 {
	if len(frames) == 0 {
		return 0
	}
	h := fnv.New64a()
	for _, id := range frames {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(id)))
	}
	return int64(h.Sum64())
}

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
		row = Frame{Function: text(f.Name()), File: text(n.set.Place(f)), Line: int32(f.Line),
			Python: f.Kind == symbol.Python, Own: n.set.User(f)}
		row.Frame = frameID(&row)
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
	rows := make([]Frame, len(frames))
	for i := range frames {
		rows[i] = n.frame(frames[i])
		s.Frames[i] = rows[i].Frame
		if rows[i].Own && s.Function == "" {
			s.Function, s.File, s.Line = rows[i].Function, rows[i].File, rows[i].Line
		}
	}
	s.Stack = stackID(s.Frames)
	return namedStack{s, rows}
}
