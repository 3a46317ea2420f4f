package analyzer

import (
	"slices"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/rules"
	"memtrace/analyzer/symbol"
	"memtrace/trace"
)

// lifetime tells blocks that a pass keeps from those that it frees again.
type lifetime uint8

const (
	lasting lifetime = iota
	temporary
)

func (l lifetime) String() string { return rules.Words(rules.Lifetime)[l] }

// phaseID tells apart what phases depend on: call stacks, and the thread, which may be one that computes gradients.
func phaseID(r *resolver, o *origin) uint64 { return r.phases().id(o) }

func phaseKey(r *resolver, id uint64) string { return r.phases().list[id].of(r) }

// phases numbers the origins that a phase is known or asked of.
type phases struct {
	index map[phaseOrigin]uint64
	list  []phaseAnswer
}

type phaseOrigin struct {
	callstack.Pair
	thread trace.ThreadID
}

type phaseAnswer struct {
	phaseOrigin
	text  string           // "" until it was asked for
	named *symbol.Resolver // what stacks were named with then
}

func (r *resolver) phases() *phases {
	if r.phaseList == nil {
		r.phaseList = &phases{index: make(map[phaseOrigin]uint64)}
	}
	return r.phaseList
}

func (p *phases) id(o *origin) uint64 {
	from := phaseOrigin{callstack.Pair{Native: o.stack, Python: o.pyStack}, o.thread}
	id, known := p.index[from]
	if !known {
		id = uint64(len(p.list))
		p.index[from] = id
		p.list = append(p.list, phaseAnswer{phaseOrigin: from})
	}
	return id
}

func (a *phaseAnswer) of(r *resolver) string {
	stack := r.stacks.Of(a.Pair)
	if a.text != "" && a.named == r.stacks.Names {
		return a.text
	}
	frames := make([]*rules.Frame, len(stack.All))
	for i, f := range stack.All {
		frames[i] = r.stacks.RuleFrame(f)
	}
	th, _ := r.tables.Thread(a.thread)
	a.text, a.named = rules.PhaseOf(frames, th.Name), r.stacks.Names
	return a.text
}

// phaseNumbers are the phases as bytes, in the order of rules.Words.
func phaseNumber(text string) uint8 { return uint8(slices.Index(rules.Words(rules.Phase), text)) }

// phase returns the phase that a cell's blocks were asked for in.
func (r *resolver) phase(v *cell) uint8 {
	if v.phase == 0 {
		list := r.phases()
		v.phase = 1 + phaseNumber(list.list[list.id(&v.origin)].of(r))
	}
	return v.phase - 1
}
