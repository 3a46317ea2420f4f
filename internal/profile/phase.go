package profile

import (
	"slices"

	"memtrace/internal/callstack"
	"memtrace/internal/rules"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// lifetime distinguishes blocks that a pass keeps from those that it frees again.
type lifetime uint8

const (
	lasting lifetime = iota
	Temporary
)

func (l lifetime) String() string { return rules.Words(rules.Lifetime)[l] }

// phaseID identifies what a phase depends on: call stacks, and the thread, which may be one that computes gradients.
func phaseID(r *Resolver, o *Origin) uint64 { return r.phases().id(r, o) }

func phaseKey(r *Resolver, id uint64) string { return r.phases().list[id].of(r) }

// phases numbers the origins whose phase is known or requested.
type phases struct {
	index map[phaseOrigin]uint64
	list  []phaseAnswer
}

// otherThread represents all threads that compute no gradients, whose number is unbounded.
const otherThread = ^trace.ThreadID(0)

type phaseOrigin struct {
	callstack.Pair
	thread trace.ThreadID
}

type phaseAnswer struct {
	phaseOrigin
	text  string           // "" until it is requested
	named *symbol.Resolver // what stacks were named with then
}

func (r *Resolver) phases() *phases {
	if r.phaseList == nil {
		r.phaseList = &phases{index: make(map[phaseOrigin]uint64)}
	}
	return r.phaseList
}

func (p *phases) id(r *Resolver, o *Origin) uint64 {
	from := phaseOrigin{callstack.Pair{Native: o.Stack, Python: o.PyStack}, otherThread}
	if th, _ := r.Tables.Thread(o.Thread); rules.ComputesGradients(th.Name) {
		from.thread = o.Thread
	}
	id, known := p.index[from]
	if !known {
		id = uint64(len(p.list))
		p.index[from] = id
		p.list = append(p.list, phaseAnswer{phaseOrigin: from})
	}
	return id
}

func (a *phaseAnswer) of(r *Resolver) string {
	if a.text != "" && a.named == r.Stacks.Names {
		r.Stacks.Touch(a.Pair)
		return a.text
	}
	a.text, _ = r.PhaseOf(a.Pair, a.thread)
	a.named = r.Stacks.Names
	return a.text
}

// PhaseOf returns the phase of a call stack of a thread, one of rules.Words(rules.Phase), and the stack's frames. It
// caches nothing.
func (r *Resolver) PhaseOf(pair callstack.Pair, thread trace.ThreadID) (phase string, frames []*rules.Frame) {
	stack := r.Stacks.Of(pair)
	frames = make([]*rules.Frame, len(stack.All))
	for i, f := range stack.All {
		frames[i] = r.Stacks.RuleFrame(f)
	}
	th, _ := r.Tables.Thread(thread)
	return rules.PhaseOf(frames, th.Name), frames
}

// PhaseNumber returns the place of a phase among rules.Words(rules.Phase).
func PhaseNumber(text string) uint8 { return uint8(slices.Index(rules.Words(rules.Phase), text)) }

// Phase returns the phase in which a cell's blocks were allocated.
func (r *Resolver) Phase(v *Cell) uint8 {
	if v.phase == 0 {
		list := r.phases()
		v.phase = 1 + PhaseNumber(list.list[list.id(r, &v.Origin)].of(r))
	}
	return v.phase - 1
}

// PhaseName is the name of a phase's number.
func PhaseName(number uint8) string { return phaseNames[number] }

var phaseNames = rules.Words(rules.Phase)
