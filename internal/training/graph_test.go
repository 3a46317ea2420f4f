package training

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// madePasses is a program whose passes are known.
type madePasses struct {
	graphs
	links callstack.LinkedStacks
	total heap.Meter
	run   uint32
	op    uint32 // the latest operator
}

const madeBytes = 512

func (m *madePasses) alloc(phase uint8, a callstack.Asker) {
	a.OpThread, a.Thread = 1, 1
	b := &heap.Block{Size: madeBytes, PyStack: m.links.StackOf(&a), Thread: 1}
	epoch := m.total.Epoch
	m.total.Grow(madeBytes, 0)
	m.opened(m.run, phase, b, m.links.Latest(), epoch)
}

// forward makes blocks in a pass, whose operators are recorded for autograd or not, and returns its number.
func (m *madePasses) forward(recorded bool, blocks int) uint32 {
	m.run++
	for range blocks {
		if recorded {
			m.op++
		}
		m.alloc(phaseForward, callstack.Asker{PyStack: 1, Op: m.op})
	}
	return m.run
}

// backward goes through an operator.
func (m *madePasses) backward(op uint32) {
	m.run++
	m.alloc(phaseBackward, callstack.Asker{Op: op, Backward: true})
}

func (m *madePasses) drop(run uint32, blocks int) {
	for range blocks {
		m.closed(run, madeBytes, m.total.Epoch)
		m.total.Shrink(madeBytes)
	}
}

// Passes that keep a graph at the peak and give it up without a backward pass are found, and no others.
func TestGraphs(t *testing.T) {
	const blocks = 12
	three := func(m *madePasses) {
		for range 3 {
			m.forward(true, blocks)
		}
	}
	dropped := func(m *madePasses) {
		for run := range uint32(3) {
			m.drop(run+1, blocks)
		}
	}
	for name, c := range map[string]struct {
		program func(m *madePasses)
		passes  uint64
	}{
		"three are kept": {func(m *madePasses) { three(m); dropped(m) }, 3},
		"one is differentiated": {func(m *madePasses) {
			three(m)
			m.backward(blocks + 3)
			dropped(m)
		}, 2},
		"one is, before the others began": {func(m *madePasses) {
			first := m.forward(true, blocks)
			m.backward(2)
			m.drop(first, blocks)
			for range 2 {
				m.forward(true, blocks)
			}
			m.drop(first+2, blocks)
			m.drop(first+3, blocks)
		}, 2},
		"backward passes lead nowhere": {func(m *madePasses) {
			three(m)
			m.backward(1 << 20)
			dropped(m)
		}, 0},
		"under no_grad":          {func(m *madePasses) { m.drop(m.forward(false, blocks), blocks) }, 0},
		"still there at the end": {three, 0},
		"only results were kept": {func(m *madePasses) {
			for range 9 {
				m.drop(m.forward(true, blocks), blocks-1)
			}
			last := m.forward(false, 2*blocks)
			m.drop(last, 2*blocks)
			for run := range last {
				m.drop(run, 1)
			}
		}, 0},
	} {
		m := &madePasses{}
		c.program(m)
		stacks := callstack.NewStacks(&trace.Tables{}, &m.links)
		stacks.Start()
		got := m.value(stacks, m.total.Epoch)
		if got == nil {
			got = &report.Undifferentiated{}
		}
		if want := (report.Undifferentiated{Passes: c.passes, Bytes: c.passes * blocks * madeBytes}); *got != want {
			t.Errorf("%s: %+v, want %+v", name, *got, want)
		}
	}
}

// Code outside of a module ends the pass of its call where that was recorded for autograd: what is freed then was saved
// for a backward pass, and is nothing temporary.
func TestPassesEndOutside(t *testing.T) {
	const module, outside, cut trace.StackID = 1, 2, 3
	tables := &trace.Tables{}
	tables.AddPyStack(trace.PyStack{ID: module, Frames: []trace.PyFrame{{Code: 1, Self: 0x9000}, {Code: 2}}})
	tables.AddPyStack(trace.PyStack{ID: outside, Frames: []trace.PyFrame{{Code: 2, Offset: 8}}})
	tables.AddPyStack(trace.PyStack{ID: cut, Frames: []trace.PyFrame{{Code: 2, Offset: 8}}, End: trace.StackDepth})
	for name, c := range map[string]struct {
		stack  trace.StackID
		thread trace.ThreadID
		latest uint64
		ends   bool
	}{
		"outside":             {outside, 1, 9, true},
		"nothing is recorded": {outside, 1, 1, false},
		"another thread":      {outside, 2, 9, false},
		"a stack that is cut": {cut, 1, 9, false},
	} {
		p := passes{tables: tables, pass: phaseOther}
		opened := func(phase uint8, stack trace.StackID, native trace.StackID, thread trace.ThreadID, operator uint64) {
			p.opened(phase, &heap.Block{PyStack: stack, Stack: native, Thread: thread},
				callstack.Operator{Number: operator})
		}
		opened(phaseForward, module, 1, 1, 1)
		opened(phaseForward, module, 2, 1, c.latest)
		run := p.run
		opened(phaseOther, c.stack, 3, c.thread, 20)
		if ended := p.run != run; ended != c.ends {
			t.Errorf("%s: ended %v", name, ended)
		}
		run = p.run
		if opened(phaseForward, module, 2, 1, 21); c.ends != (p.run != run) {
			t.Errorf("%s: the next block of a module is of pass %d behind %d", name, p.run, run)
		}
	}
}
