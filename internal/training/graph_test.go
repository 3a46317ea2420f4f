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
	op    uint32              // the latest operator
	id    uint32              // and block
	ids   map[uint32][]uint32 // live blocks by pass

	after, scratch bool          // of the next blocks
	line           trace.StackID // that runs the next passes
}

const madeBytes = 512

func (m *madePasses) alloc(phase uint8, a callstack.Asker) {
	a.OpThread, a.Thread = 1, 1
	b := &heap.Block{Size: madeBytes, PyStack: m.links.StackOf(&a), Thread: 1}
	epoch := m.total.Epoch
	m.total.Grow(madeBytes, 0)
	m.id++
	m.opened(&passBlock{Block: b, id: m.id, run: m.run, after: m.after, phase: phase, of: m.links.Latest(),
		scratch: m.scratch}, epoch)
	m.ids[m.run] = append(m.ids[m.run], m.id)
}

// forward makes blocks in a pass, whose operators are recorded for autograd or not, and returns its number.
func (m *madePasses) forward(recorded bool, blocks int) uint32 {
	m.run++
	for range blocks {
		if recorded {
			m.op++
		}
		m.alloc(phaseForward, callstack.Asker{PyStack: m.line, Op: m.op})
	}
	return m.run
}

// backward goes through an operator.
func (m *madePasses) backward(op uint32) {
	m.run++
	m.alloc(phaseBackward, callstack.Asker{Op: op, Backward: true})
}

func (m *madePasses) drop(run uint32, blocks int) {
	for _, id := range m.ids[run][:blocks] {
		m.closed(run, id, madeBytes, m.total.Epoch)
		m.total.Shrink(madeBytes)
	}
	m.ids[run] = m.ids[run][blocks:]
}

// Passes that keep a graph at the peak that no backward pass goes through are found, and no others; and of what they
// keep, what they would have had without a graph does not count.
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
	outside := func(m *madePasses, blocks int) {
		m.after = true
		m.forward(true, blocks)
		m.after = false
	}
	fed := func(m *madePasses) {
		for range 3 {
			m.alloc(phaseOther, callstack.Asker{PyStack: 1})
			m.forward(true, blocks)
		}
	}
	over := Ending{Over: true}
	for name, c := range map[string]struct {
		program func(m *madePasses)
		end     Ending
		passes  uint64
		blocks  uint64 // without each pass's result, and what the latest one's operator reads
		// the same of lines of which other passes are differentiated
		abandoned, abandonedBlocks uint64
	}{
		"three are kept": {program: func(m *madePasses) { three(m); dropped(m) }, passes: 3, blocks: 3*blocks - 4},
		"one is differentiated": {program: func(m *madePasses) {
			three(m)
			m.backward(blocks + 3)
			dropped(m)
		}, abandoned: 1, abandonedBlocks: blocks - 1},
		"one is, before the others began": {program: func(m *madePasses) {
			m.line = training
			first := m.forward(true, blocks)
			m.backward(2)
			m.drop(first, blocks)
			m.line = validation
			for range 2 {
				m.forward(true, blocks)
			}
			m.drop(first+2, blocks)
			m.drop(first+3, blocks)
		}, passes: 2, blocks: 2*blocks - 3},
		// torch.no_grad() was advised for a training loop that had kept its exceptions, with their tracebacks
		"of the line of those that are": {program: func(m *madePasses) {
			for range 3 {
				m.forward(true, blocks)
				m.forward(true, blocks)
				m.backward(m.op)
				m.drop(m.run-1, blocks)
			}
			for run := range uint32(3) {
				m.drop(3*run+1, blocks)
			}
		}, abandoned: 3, abandonedBlocks: 3*blocks - 4},
		"the latest of such a line": {program: func(m *madePasses) {
			first := m.forward(true, blocks)
			m.backward(2)
			m.drop(first, blocks)
			m.drop(m.forward(true, 2*blocks), 2*blocks)
		}},
		"of such a line, and of another one": {program: func(m *madePasses) {
			m.line = validation
			m.forward(true, blocks)
			m.line = training
			m.forward(true, blocks)
			m.forward(true, blocks)
			m.backward(m.op)
			dropped(m)
		}, passes: 1, blocks: blocks - 1, abandoned: 1, abandonedBlocks: blocks - 2},
		"lines are not known": {program: func(m *madePasses) {
			m.line = 0
			three(m)
			m.backward(2)
			dropped(m)
		}, abandoned: 1, abandonedBlocks: blocks - 1},
		"backward passes lead nowhere": {program: func(m *madePasses) {
			three(m)
			m.backward(1 << 20)
			dropped(m)
		}},
		"under no_grad": {program: func(m *madePasses) { m.drop(m.forward(false, blocks), blocks) }},
		// a program that leaked until its end was told nothing
		"still there when the program ends":   {program: fed, end: over, passes: 3, blocks: 3*blocks - 4},
		"still there when the recording ends": {program: fed},
		"without their inputs":                {program: three, end: over},
		"inputs are gone": {program: func(m *madePasses) {
			fed(m)
			for run := range uint32(3) { // the first of the blocks between two passes
				id := m.ids[run][len(m.ids[run])-1]
				m.closed(run, id, madeBytes, m.total.Epoch)
			}
		}, end: over},
		"graphs were seen": {program: three, end: Ending{Over: true, Graphs: true}, passes: 3, blocks: 3*blocks - 4},
		"one is differentiated, two are there when the program ends": {program: func(m *madePasses) {
			fed(m)
			m.backward(2)
		}, end: over, abandoned: 1, abandonedBlocks: blocks - 1},
		"what is there at the end has no graph": {program: fed,
			end: Ending{Over: true, GraphlessBytes: 3 * blocks * madeBytes}},
		"the model's parameters have none": {program: fed,
			end: Ending{Over: true, GraphlessBytes: blocks * madeBytes}, passes: 3, blocks: 3*blocks - 4},
		"only results were kept": {program: func(m *madePasses) {
			for range 9 {
				m.drop(m.forward(true, blocks), blocks-1)
			}
			last := m.forward(false, 2*blocks)
			m.drop(last, 2*blocks)
			for run := range last - 1 {
				m.drop(run+1, 1)
			}
		}},
		// a pass that gave its graph up was said to have kept what outlived it for a backward pass
		"some of it outlives the graph": {program: func(m *madePasses) { m.drop(m.forward(true, blocks), blocks-3) },
			passes: 1, blocks: blocks - 3},
		"beside scratch memory of a library": {program: func(m *madePasses) {
			run := m.forward(true, blocks)
			m.scratch = true
			m.alloc(phaseForward, callstack.Asker{PyStack: 1, Op: m.op})
			m.drop(run, blocks)
		}, passes: 1, blocks: blocks - 2},
		// three blocks of a module and three of the code that called it
		"half of a pass is outside of its module": {program: func(m *madePasses) {
			for range 2 {
				m.alloc(phaseOther, callstack.Asker{PyStack: 1})
				m.forward(true, leastGraph-1)
				outside(m, leastGraph-1)
			}
		}, end: over, passes: 2, blocks: 4*(leastGraph-1) - 3},
	} {
		m := &madePasses{ids: make(map[uint32][]uint32), line: validation}
		c.program(m)
		stacks := callstack.NewStacks(lines(), &m.links)
		stacks.Start()
		got, abandoned := m.value(stacks, c.end, m.total.Epoch)
		for what, v := range map[string]struct {
			got            *report.Undifferentiated
			passes, blocks uint64
		}{"undifferentiated": {got, c.passes, c.blocks}, "abandoned": {abandoned, c.abandoned, c.abandonedBlocks}} {
			if v.got == nil {
				v.got = &report.Undifferentiated{}
			}
			want := report.Undifferentiated{Passes: v.passes, Bytes: v.blocks * madeBytes, Site: v.got.Site}
			if *v.got != want {
				t.Errorf("%s: %s: %+v, want %+v", name, what, *v.got, want)
			}
		}
	}
}

// Lines that run passes.
const validation, training trace.StackID = 1, 2

func lines() *trace.Tables {
	tables := &trace.Tables{}
	tables.AddCode(trace.Code{ID: 1, Name: "_call_impl", QualName: "Module._call_impl",
		File: "/usr/lib/python3.11/site-packages/torch/nn/modules/module.py", FirstLine: 1})
	for line, name := range map[trace.StackID]string{validation: "validate", training: "train"} {
		code := trace.CodeID(line + 1)
		tables.AddCode(trace.Code{ID: code, Name: name, QualName: name, File: "/home/ada/train.py", FirstLine: 1})
		tables.AddPyStack(trace.PyStack{ID: line, Frames: []trace.PyFrame{{Code: 1}, {Code: code}}})
	}
	return tables
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

// What a cache keeps while others are served was temporary: the first call of a module had a stack of its own, and none
// of the later ones began another pass.
func TestModuleCalledAgain(t *testing.T) {
	const first, again, other, loop trace.StackID = 1, 2, 3, 4
	tables := &trace.Tables{}
	for id, self := range map[trace.StackID]uint64{first: 0x9000, again: 0x9000, other: 0xa000, loop: 0xb000} {
		code := trace.CodeID(2)
		if id == other {
			code = 3
		}
		tables.AddPyStack(trace.PyStack{ID: id, Frames: []trace.PyFrame{{Code: 1, Self: self}, {Code: code}}})
	}
	type block struct {
		stack    trace.StackID
		native   trace.StackID
		operator uint64
	}
	for name, c := range map[string]struct {
		blocks []block
		passes []uint32
	}{
		"the first call, after another": {[]block{{first, 1, 0}, {other, 2, 0}, {again, 3, 0}, {other, 2, 0},
			{again, 3, 0}}, []uint32{1, 1, 2, 2, 3}},
		"another call, with nothing between": {[]block{{first, 1, 0}, {other, 2, 0}, {other, 3, 0}, {other, 2, 0}},
			[]uint32{1, 1, 1, 2}},
		"another call, after a third": {[]block{{first, 1, 0}, {other, 2, 0}, {loop, 4, 0}, {other, 3, 0}},
			[]uint32{1, 1, 1, 2}},
		"the call goes on": {[]block{{first, 1, 0}, {again, 3, 0}, {first, 4, 0}, {again, 3, 0}},
			[]uint32{1, 1, 1, 1}},
		"the layers of a net": {[]block{{first, 1, 0}, {loop, 1, 0}, {other, 1, 0}}, []uint32{1, 1, 1}},
		"autograd records": {[]block{{first, 1, 1}, {other, 2, 2}, {again, 3, 3}, {other, 2, 4}},
			[]uint32{1, 1, 1, 1}},
	} {
		p := passes{tables: tables, pass: phaseOther}
		for i, b := range c.blocks {
			p.opened(phaseForward, &heap.Block{PyStack: b.stack, Stack: b.native, Thread: 1},
				callstack.Operator{Number: b.operator})
			if p.run != c.passes[i] {
				t.Errorf("%s: block %d is of pass %d, want %d", name, i, p.run, c.passes[i])
			}
		}
	}
}
