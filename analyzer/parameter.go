package analyzer

import (
	"strings"

	"memtrace/trace"
)

// parameterList keeps what the framework said of parameters: the last figures of each.
type parameterList struct {
	list  []Parameter
	index map[string]int
	names map[trace.StringID]int // parameter that a name belongs to
}

// named takes in one name of a block.
func (l *parameterList) named(e *trace.Event, b *Block, tables *trace.Tables) {
	if e.Category == trace.CategoryData || e.Category == trace.CategoryFree || e.Handle == 0 { // flat memory has no object; its parts are named beside it
		return
	}
	name := tables.String(e.Name)
	i, known := l.names[e.Name]
	if !known {
		if l.names == nil {
			l.index, l.names = make(map[string]int), make(map[trace.StringID]int)
		}
		parameter := parameterOf(name)
		if i, known = l.index[parameter]; !known {
			i = len(l.list)
			l.index[parameter] = i
			l.list = append(l.list, Parameter{Name: parameter, Category: trace.CategoryParameter.String(), States: []State{}})
		}
		l.names[e.Name] = i
	}
	p := &l.list[i]
	switch e.Category {
	case trace.CategoryParameter, trace.CategoryBuffer:
		p.Category, p.Bytes, p.BlockBytes = e.Category.String(), e.Size, b.Size
	case trace.CategoryGradient:
		p.Gradient, p.GradBlock = e.Size, b.Size
	case trace.CategoryOptimizer:
		p.keep(State{stateOf(name), e.Size, b.Size})
	}
}

// stateOf returns what an optimizer calls a state: exp_avg of exp_avg:h.0.weight, mean of optimizer_state:mean:fc1_weight.
func stateOf(name string) string {
	state := name[:max(strings.LastIndexByte(name, ':'), 0)]
	return strings.TrimPrefix(state, "optimizer_state:")
}

func (p *Parameter) keep(s State) {
	for i := range p.States {
		if p.States[i].Name == s.Name {
			p.States[i] = s
			return
		}
	}
	p.States = append(p.States, s)
}
