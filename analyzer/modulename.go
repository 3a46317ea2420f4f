package analyzer

import (
	"strings"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// moduleNames knows what the framework calls the modules whose methods run in call stacks. Frames hold the address of the object; another object may come to live there, and is
// then named anew.
type moduleNames struct {
	first  map[uint64]trace.StringID // by address: the first name, which holds before it was said, too
	latest map[uint64]trace.StringID

	own, tied []moduleAnswer // by Python stack
	changes   uint32         // of names
}

// moduleAnswer is the module of a stack, which is right until a name changes.
type moduleAnswer struct {
	changes uint32
	name    trace.StringID
}

// answer returns where the answer for a stack is kept, nil for numbers that only damaged traces have.
func (m *moduleNames) answer(stack trace.StackID) *moduleAnswer {
	list := &m.own
	if stack&callstack.LinkedBit != 0 {
		list, stack = &m.tied, stack&^callstack.LinkedBit
	}
	if stack >= meter.MaxDirectID {
		return nil
	}
	return meter.Slot(list, int(stack))
}

// named takes in what a module is called from now on.
func (m *moduleNames) named(object uint64, name trace.StringID) {
	if m.latest[object] == name {
		return
	}
	if m.first == nil {
		m.first = make(map[uint64]trace.StringID)
	}
	if m.latest == nil {
		m.latest = make(map[uint64]trace.StringID)
	}
	if m.first[object] == 0 {
		m.first[object] = name
	}
	m.latest[object] = name
	m.changes++
}

func (m *moduleNames) of(object uint64) trace.StringID {
	if name := m.latest[object]; name != 0 {
		return name
	}
	return m.first[object]
}

func (m *moduleNames) innermost(frames []trace.PyFrame) trace.StringID {
	for _, f := range frames {
		if f.Self == 0 {
			continue
		}
		if name := m.of(f.Self); name != 0 {
			return name
		}
	}
	return 0
}

// parameterOf returns the parameter that a name belongs to: h.0.weight of exp_avg:h.0.weight and of in_arg:h.0.weight.
func parameterOf(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// moduleOfParameter returns the module that a parameter is part of, "" for one at the top.
func moduleOfParameter(parameter string) string {
	return parameter[:max(strings.LastIndexByte(parameter, '.'), 0)]
}

// moduleOf names the module that a block belongs to: the one that it is a parameter of, or that asked for it. "" if none is known.
func (r *resolver) moduleOf(o *origin) string {
	if o.category != trace.CategoryNone {
		return moduleOfParameter(parameterOf(r.tables.String(o.name)))
	}
	name := o.module
	if name == 0 && r.module != nil {
		name = r.module(o.pyStack) // the module was named later
	}
	return r.tables.String(name)
}

// What a block's module is known by; the upper half of the grouping's identifier.
const (
	moduleByName   = 1 << 32 // of the block
	moduleByModule = 2 << 32
	moduleByStack  = 3 << 32
)

func moduleID(_ *resolver, o *origin) uint64 {
	switch {
	case o.category != trace.CategoryNone:
		return moduleByName | uint64(o.name)
	case o.module != 0:
		return moduleByModule | uint64(o.module)
	}
	return moduleByStack | uint64(o.pyStack)
}

func moduleKey(r *resolver, id uint64) string {
	var o origin
	switch low := uint32(id); id &^ uint64(1<<32-1) {
	case moduleByName:
		o.category, o.name = trace.CategoryParameter, trace.StringID(low)
	case moduleByModule:
		o.module = trace.StringID(low)
	default:
		o.pyStack = trace.StackID(low)
	}
	if name := r.moduleOf(&o); name != "" {
		return name
	}
	return report.NoModule
}

// ofStack returns the innermost module of a Python stack, 0 if none has a name. For a block of a backward pass it is that of its forward operator, unless the backward pass
// itself runs a module.
func (m *moduleNames) ofStack(stack trace.StackID, links *callstack.LinkedStacks, tables *trace.Tables) trace.StringID {
	if stack == 0 || m.first == nil {
		return 0
	}
	answer := m.answer(stack)
	if answer != nil && answer.changes == m.changes+1 {
		return answer.name
	}
	pair := links.Split(stack)
	own, _ := tables.PyStack(pair.Backward)
	name := m.innermost(own)
	if name == 0 {
		name = m.innermost(pair.Frames(tables))
	}
	if answer != nil {
		*answer = moduleAnswer{m.changes + 1, name}
	}
	return name
}
