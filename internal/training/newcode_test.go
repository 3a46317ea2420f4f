package training

import (
	"testing"

	"memtrace/internal/callstack"
	"memtrace/trace"
)

// Code is new in the iteration in which it first allocates, unless that is the first one. Steps of backward passes,
// whose stacks have other numbers, are never.
func TestNewCode(t *testing.T) {
	t.Parallel()
	var of Tracker
	for n, c := range []struct {
		stack trace.StackID
		ends  bool // the iteration, after that
		isNew bool
	}{
		{stack: 3}, {stack: 7, ends: true},
		{stack: 7}, {stack: 3}, {stack: 9, isNew: true}, {stack: callstack.LinkedBit | 20},
		{stack: 9, isNew: true, ends: true},
		{stack: 9}, {stack: 8}, {stack: 10, isNew: true},
	} {
		if of.code.opened(c.stack); of.IsNewCode(c.stack) != c.isNew {
			t.Errorf("%d: stack %d is new: %v", n, c.stack, !c.isNew)
		}
		if c.ends {
			of.code.ended()
		}
	}
}
