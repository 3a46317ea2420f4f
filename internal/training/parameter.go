package training

import (
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// ParameterList keeps what the framework said of parameters: the last figures of each, by device.
type ParameterList struct {
	list    []parameterFigures
	index   map[string]int
	names   map[trace.StringID]int // parameter that a name belongs to
	objects map[uint64]int         // parameter by the address of its object
}

// parameterFigures is a parameter in the making.
type parameterFigures struct {
	name     string
	category trace.Category
	renamed  bool  // its object has another name now
	from     int64 // time of the first block that had it; 0 none
	order    []figureKey
	figures  map[figureKey]figure
}

// figureKey tells what belongs to a parameter apart. Copies on several devices are all counted.
type figureKey struct {
	category trace.Category // CategoryParameter also of buffers
	state    string
	device   int16
}

type figure struct {
	bytes, block uint64
	requested    *report.Requested // of the block; nil unknown
}

// Named takes in one name of a block. requested divides the block, nil where that is not known.
func (l *ParameterList) Named(e *trace.Event, b *heap.Block, requested *report.Requested, tables *trace.Tables) {
	// flat memory has no object; its parts are named beside it
	if e.Category == trace.CategoryData || e.Category == trace.CategoryFree || e.Handle == 0 {
		return
	}
	i := l.find(e.Name, tables)
	p := &l.list[i]
	key := figureKey{category: e.Category, device: b.Device}
	switch e.Category {
	case trace.CategoryParameter, trace.CategoryBuffer:
		p.category, key.category = e.Category, trace.CategoryParameter
		if p.from == 0 || b.Time < p.from {
			p.from = b.Time
		}
		if before, known := l.objects[e.Handle]; known && before != i {
			l.list[before].renamed = true
		}
		l.objects[e.Handle], p.renamed = i, false
	case trace.CategoryOptimizer:
		key.state = stateOf(tables.String(e.Name))
	}
	if _, known := p.figures[key]; !known {
		p.order = append(p.order, key)
	}
	p.figures[key] = figure{e.Size, b.Size, requested}
}

// find returns the parameter that a name belongs to.
func (l *ParameterList) find(id trace.StringID, tables *trace.Tables) int {
	i, known := l.names[id]
	if known {
		return i
	}
	if l.names == nil {
		l.index, l.names, l.objects = make(map[string]int), make(map[trace.StringID]int), make(map[uint64]int)
	}
	parameter := profile.ParameterOf(tables.String(id))
	if i, known = l.index[parameter]; !known {
		i = len(l.list)
		l.index[parameter] = i
		l.list = append(l.list, parameterFigures{name: parameter, category: trace.CategoryParameter,
			figures: make(map[figureKey]figure)})
	}
	l.names[id] = i
	return i
}

// stateOf returns what an optimizer calls a state: exp_avg of exp_avg:h.0.weight, mean of
// optimizer_state:mean:fc1_weight.
func stateOf(name string) string {
	state := name[:max(strings.LastIndexByte(name, ':'), 0)]
	return strings.TrimPrefix(state, "optimizer_state:")
}

// Values lists the parameters under their last names.
func (l *ParameterList) Values() []report.Parameter {
	list := []report.Parameter{}
	for i := range l.list {
		if p := &l.list[i]; !p.renamed {
			list = append(list, p.value())
		}
	}
	return list
}

// isOptimizer says whether an optimizer keeps this for itself: nobody spoke of a parameter of that name.
func (p *parameterFigures) isOptimizer() bool {
	return !slices.ContainsFunc(p.order, func(key figureKey) bool { return key.category != trace.CategoryOptimizer })
}

func (p *parameterFigures) value() report.Parameter {
	v := report.Parameter{Name: p.name, Category: p.category.String(), FromNS: p.from,
		States: []report.State{}}
	if p.isOptimizer() {
		v.Category = trace.CategoryOptimizer.String()
	}
	states := make(map[string]int) // in v.States; a trace may have as many as it likes
	for _, key := range p.order {
		f := p.figures[key]
		v.Requested = report.PlusRequested(v.Requested, f.requested)
		switch key.category {
		case trace.CategoryGradient:
			v.Gradient += f.bytes
			v.GradBlock += f.block
		case trace.CategoryOptimizer:
			i, known := states[key.state]
			if !known {
				i = len(v.States)
				states[key.state] = i
				v.States = append(v.States, report.State{Name: key.state})
			}
			v.States[i].Bytes += f.bytes
			v.States[i].BlockBytes += f.block
		default:
			v.Bytes += f.bytes
			v.BlockBytes += f.block
		}
	}
	return v
}
