package profile

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// ModuleNames maps the modules whose methods run in call stacks to the framework's names. Frames hold the address of
// the object; the address may be reused by another object, which is then named again.
type ModuleNames struct {
	First  map[uint64]trace.StringID // by address: the first name, which also applies before it was recorded
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
func (m *ModuleNames) answer(stack trace.StackID) *moduleAnswer {
	list := &m.own
	if stack&callstack.LinkedBit != 0 {
		list, stack = &m.tied, stack&^callstack.LinkedBit
	}
	if stack >= heap.MaxDirectID {
		return nil
	}
	return heap.Slot(list, int(stack))
}

// Named records the name of a module from now on.
func (m *ModuleNames) Named(object uint64, name trace.StringID) {
	if m.latest[object] == name {
		return
	}
	if m.First == nil {
		m.First = make(map[uint64]trace.StringID)
	}
	if m.latest == nil {
		m.latest = make(map[uint64]trace.StringID)
	}
	if m.First[object] == 0 {
		m.First[object] = name
	}
	m.latest[object] = name
	m.changes++
}

func (m *ModuleNames) of(object uint64) trace.StringID {
	if name := m.latest[object]; name != 0 {
		return name
	}
	return m.First[object]
}

func (m *ModuleNames) innermost(frames []trace.PyFrame) trace.StringID {
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

// ParameterOf returns the parameter that a name belongs to: h.0.weight of exp_avg:h.0.weight and of in_arg:h.0.weight.
func ParameterOf(name string) string { return name[strings.LastIndexByte(name, ':')+1:] }

// moduleOfParameter returns the module that a parameter is part of, "" for one at the top.
func moduleOfParameter(parameter string) string {
	return parameter[:max(strings.LastIndexByte(parameter, '.'), 0)]
}

// ModuleOf names the module of a block: the one whose parameter it is, or that allocated it. "" if none is known.
func (r *Resolver) ModuleOf(o *Origin) string {
	if o.Category != trace.CategoryNone {
		return moduleOfParameter(ParameterOf(r.Tables.String(o.Name)))
	}
	name := o.Module
	if name == 0 && r.Module != nil {
		name = r.Module(o.PyStack) // the module was named later
	}
	return r.Tables.String(name)
}

// What a block's module is known by; the upper half of the grouping's identifier.
const (
	moduleByName   = 1 << 32 // of the block
	moduleByModule = 2 << 32
	moduleByStack  = 3 << 32
)

func ModuleID(_ *Resolver, o *Origin) uint64 {
	switch {
	case o.Category != trace.CategoryNone:
		return moduleByName | uint64(o.Name)
	case o.Module != 0:
		return moduleByModule | uint64(o.Module)
	}
	return moduleByStack | uint64(o.PyStack)
}

func ModuleKey(r *Resolver, id uint64) string {
	var o Origin
	switch low := uint32(id); id &^ uint64(1<<32-1) {
	case moduleByName:
		o.Category, o.Name = trace.CategoryParameter, trace.StringID(low)
	case moduleByModule:
		o.Module = trace.StringID(low)
	default:
		o.PyStack = trace.StackID(low)
	}
	if name := r.ModuleOf(&o); name != "" {
		return name
	}
	return report.NoModule
}

// OfStack returns the innermost module of a Python stack, 0 if none has a name. For a block of a backward pass it is
// that of its forward operator, unless the backward pass itself runs a module.
func (m *ModuleNames) OfStack(stack trace.StackID, links *callstack.LinkedStacks, tables *trace.Tables) trace.StringID {
	if stack == 0 || m.First == nil {
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
