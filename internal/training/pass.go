package training

import (
	"encoding/binary"
	"slices"

	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// passes tells the passes of a training loop apart: each forward, backward and optimizer step is one.
type passes struct {
	tables *trace.Tables
	run    uint32         // passes so far
	after  bool           // the latest one is of code outside of the module that the one before it was in
	pass   uint8          // what the latest one is: its phase
	from   callstack.Pair // call stack of the first block of a forward pass: where it returns, the next one begins
	called moduleCall     // in which that block was allocated
	thread trace.ThreadID // that allocated it; 0: not known
	began  uint64         // operator of the pass's first block
	latest uint64         // and of its latest one
	within uint32         // number of the call whose blocks came last in a forward pass; 0: none
	first  callstack.Pair // call stack of that call's first block
	calls  []moduleCall   // by Python stack
	number map[string]uint32
	seen   []uint32 // by number of a call: the latest pass that it was part of
}

// moduleCall is a call of a framework's module by code that is in none.
type moduleCall struct {
	known bool
	whole bool            // the stack is: without a module, none runs
	self  uint64          // address of the module; 0: none is known to run
	by    []trace.PyFrame // the frames outside of it, innermost first
	// of this module by these frames, from 1 on, whatever allocated in it; 0: no module is known to run
	number uint32
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

// opened takes in a new block of a phase, made by an operator.
func (p *passes) opened(phase uint8, b *heap.Block, of callstack.Operator) {
	from := callstack.Pair{Native: b.Stack, Python: b.PyStack}
	switch pass := passOf(phase); {
	case pass != phaseOther && pass != p.pass:
		p.begin(pass, b, of)
	case pass == phaseForward && (from == p.from || p.returned() && p.callOf(b.PyStack).self != 0 ||
		p.calledElsewhere(b.PyStack) || p.calledAgain(b, of)):
		p.begin(pass, b, of)
	case p.pass == phaseForward && b.Thread == p.thread && p.latest > p.began && p.isOutside(b.PyStack):
		// what the module's call made and is still there has been saved for a backward pass, or is its result
		p.run++
		p.from, p.called, p.after = callstack.Pair{}, moduleCall{}, true
	case pass == phaseForward && b.Thread == p.thread:
		p.latest = of.Number
	}
}

func (p *passes) begin(pass uint8, b *heap.Block, of callstack.Operator) {
	p.run++
	p.after = false
	p.pass, p.from, p.called = pass, callstack.Pair{Native: b.Stack, Python: b.PyStack}, p.callOf(b.PyStack)
	p.thread, p.began, p.latest = b.Thread, of.Number, of.Number
	p.enter(p.called.number, p.from)
}

// enter notes that the running pass goes on in a module's call.
func (p *passes) enter(call uint32, from callstack.Pair) {
	if p.within, p.first = call, from; call != 0 {
		*heap.Slot(&p.seen, int(call)) = p.run
	}
}

// calledAgain reports whether a module's call that the running forward pass had, be it its first one or not, comes
// again, as that for each prompt and each token. Of what is recorded for autograd, the code outside tells passes apart.
func (p *passes) calledAgain(b *heap.Block, of callstack.Operator) bool {
	if b.Thread != p.thread || of.Number != p.began || p.latest != p.began {
		return false
	}
	call, from := p.callOf(b.PyStack).number, callstack.Pair{Native: b.Stack, Python: b.PyStack}
	switch {
	case call == 0:
		return false
	case call == p.within:
		return from == p.first
	case *heap.Slot(&p.seen, int(call)) == p.run:
		return true
	}
	p.enter(call, from)
	return false
}

// returned reports whether the module's call that the forward pass began with is over.
func (p *passes) returned() bool { return p.from == callstack.Pair{} }

// isOutside reports whether code that runs no module allocates, in a forward pass that began in one.
func (p *passes) isOutside(stack trace.StackID) bool {
	if p.called.self == 0 {
		return false
	}
	c := p.callOf(stack)
	return c.whole && c.self == 0
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
	if stack == 0 || stack >= heap.MaxDirectID { // that of a backward pass, or of a damaged trace
		return moduleCall{}
	}
	c := heap.Slot(&p.calls, int(stack))
	if c.known {
		return *c
	}
	frames, end := p.tables.PyStack(stack)
	c.known, c.whole = true, end == trace.StackWhole
	for i := len(frames) - 1; i >= 0 && c.whole; i-- {
		if frames[i].Self != 0 {
			c.self, c.by = frames[i].Self, frames[i+1:]
			c.number = p.numberOf(c)
			break
		}
	}
	return *c
}

// numberOf numbers the calls of modules: equal stacks may be there several times.
func (p *passes) numberOf(c *moduleCall) uint32 {
	key := binary.AppendUvarint(nil, c.self)
	for _, f := range c.by {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(f.Code)), uint64(f.Offset))
	}
	n, known := p.number[string(key)]
	if !known {
		if p.number == nil {
			p.number = make(map[string]uint32)
		}
		n = uint32(len(p.number)) + 1
		p.number[string(key)] = n
	}
	return n
}
