package trace

import (
	"slices"
	"strconv"
)

// StackEnd says why a stack ends where it does. Numbers are append-only and are written to disk.
type StackEnd uint8

// The ends of stacks.
const (
	StackWhole       StackEnd = 0 // its outermost frame was reached
	StackInterpreter StackEnd = 1 // native: cut at the innermost frame of the Python interpreter; the Python stack goes on from there
	StackDepth       StackEnd = 2 // as deep as was asked for
	StackNoRow       StackEnd = 3 // code without unwind information: compiled at run time, or Go
	StackUnsupported StackEnd = 4 // a rule that the unwinder does not follow
	StackBounds      StackEnd = 5 // the next frame would lie outside of the thread's stack
	StackUnreadable  StackEnd = 6 // Python: what should be a frame does not look like one
	StackCaller      StackEnd = 7 // only the caller was asked for
)

var stackEndNames = [...]string{"whole", "interpreter", "depth", "norow", "unsupported", "bounds", "unreadable", "caller"}

// String returns the end's name as it appears in the text form, or its number where this version has no name for it.
func (e StackEnd) String() string {
	if int(e) < len(stackEndNames) {
		return stackEndNames[e]
	}
	return strconv.Itoa(int(e))
}

// StackEndNames lists the names that this version has, by number.
func StackEndNames() []string { return stackEndNames[:] }

// ParseStackEnd is the inverse of String.
func ParseStackEnd(s string) (StackEnd, bool) {
	if i := slices.Index(stackEndNames[:], s); i >= 0 {
		return StackEnd(i), true
	}
	n, err := strconv.ParseUint(s, 0, 8)
	return StackEnd(n), err == nil
}

// Stack is an interned native call stack. Frames are code addresses, innermost first; all are return addresses, so a
// symbolizer looks up PC-1.
type Stack struct {
	ID     StackID
	Frames []uint64
	End    StackEnd
}
