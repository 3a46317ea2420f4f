package callstack

import (
	"strings"

	"memtrace/trace"
)

// CutWords are the reasons for which a stack is not whole. The other ends are as things should be.
var CutWords = map[trace.StackEnd]string{
	trace.StackDepth:       "depth",
	trace.StackNoRow:       "no unwind information",
	trace.StackUnsupported: "unsupported unwind rule",
	trace.StackBounds:      "stack bounds",
	trace.StackUnreadable:  "unreadable frame",
}

// Cut returns why a stack is incomplete, "" if it is complete.
func (c *Stacks) Cut(pair Pair) string {
	var reasons []string
	if word := CutWords[c.Tables.StackEnd(pair.Native)]; word != "" && pair.Native != 0 {
		reasons = append(reasons, word)
	}
	if frames, end := c.Tables.PyStack(c.links.Split(pair.Python).Backward); CutWords[end] != "" && len(frames) > 0 {
		reasons = append(reasons, "Python: "+CutWords[end])
	}
	return strings.Join(reasons, ", ")
}

// Recorded is what the trace contains for a pair of stacks.
type Recorded struct {
	Native, Python       bool   // it has frames of the kind
	CallerOnly           bool   // the native stack is nothing but the caller
	NativeCut, PythonCut string // why a stack with frames is not whole; "" if it is
}

// Recorded looks no name up.
func (c *Stacks) Recorded(pair Pair) Recorded {
	end := c.Tables.StackEnd(pair.Native)
	python, pythonEnd := c.Tables.PyStack(c.links.Split(pair.Python).Backward)
	r := Recorded{Native: len(c.Tables.Stack(pair.Native)) > 0, Python: len(python) > 0,
		CallerOnly: end == trace.StackCaller}
	if r.Native {
		r.NativeCut = CutWords[end]
	}
	if r.Python {
		r.PythonCut = CutWords[pythonEnd]
	}
	return r
}
