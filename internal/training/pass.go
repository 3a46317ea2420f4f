package training

import (
	"slices"

	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// passes tells the passes of a training loop apart: each forward, backward and optimizer step is one.
type passes struct {
	tables *trace.Tables
	run    uint32         // passes so far
	pass   uint8          // what the latest one is: its phase
	from   callstack.Pair // call stack of the first block of a forward pass: where it returns, the next one begins
	called moduleCall     // in which that block was allocated
	calls  []moduleCall   // by Python stack
}

// moduleCall is a call of a framework's module by code that is in none.
type moduleCall struct {
	known bool
	self  uint64          // address of the module; 0: no module runs
	by    []trace.PyFrame // the frames outside of it, innermost first
}

// passOf returns the pass of the training loop that a phase is part of. What others allocate meanwhile ends no pass.
func passOf(phase uint8) uint8 {
	switch phase {
	case phaseForward, phaseBackward, phaseOptimizer:
		return phase
	case phaseRecompute:
		return phaseBackward
	}
	return phaseOther
}

// opened takes in where a block of a phase was allocated.
func (p *passes) opened(phase uint8, from callstack.Pair) {
	switch pass := passOf(phase); {
	case pass != phaseOther && pass != p.pass:
		p.begin(pass, from)
	case pass == phaseForward && (from == p.from || p.calledElsewhere(from.Python)):
		p.begin(pass, from)
	}
}

func (p *passes) begin(pass uint8, from callstack.Pair) {
	p.run++
	p.pass, p.from, p.called = pass, from, p.callOf(from.Python)
}

// calledElsewhere reports whether other code than that of the running forward pass calls the same module, as a language
// model is called with a prompt and then, at another line, for each token.
func (p *passes) calledElsewhere(stack trace.StackID) bool {
	if p.called.self == 0 {
		return false
	}
	c := p.callOf(stack)
	return c.self == p.called.self && !slices.EqualFunc(c.by, p.called.by, func(a, b trace.PyFrame) bool {
		return a.Code == b.Code && a.Offset == b.Offset
	})
}

// callOf returns the outermost call of a module in a Python stack.
func (p *passes) callOf(stack trace.StackID) moduleCall {
	if stack >= heap.MaxDirectID { // that of a backward pass, or of a damaged trace
		return moduleCall{}
	}
	c := heap.Slot(&p.calls, int(stack))
	if c.known {
		return *c
	}
	c.known = true
	frames, end := p.tables.PyStack(stack)
	for i := len(frames) - 1; i >= 0 && end == trace.StackWhole; i-- {
		if frames[i].Self != 0 {
			c.self, c.by = frames[i].Self, frames[i+1:]
			break
		}
	}
	return *c
}
