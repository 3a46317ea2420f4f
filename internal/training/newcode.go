package training

import (
	"memtrace/internal/callstack"
	"memtrace/trace"
)

// newCode tells which code first allocated in the running iteration, by the numbers of Python stacks: they are given in
// the order in which stacks are first seen.
type newCode struct {
	newest trace.StackID // that allocated so far
	known  trace.StackID // until the latest iteration ended; 0: none did
}

func (n *newCode) opened(stack trace.StackID) {
	if stack&callstack.LinkedBit == 0 {
		n.newest = max(n.newest, stack)
	}
}

func (n *newCode) ended() { n.known = n.newest }

// IsNewCode reports whether a Python stack first allocated in the running iteration, false where no iteration ended
// before.
func (t *Tracker) IsNewCode(stack trace.StackID) bool {
	return t.code.known != 0 && stack > t.code.known && stack&callstack.LinkedBit == 0
}
