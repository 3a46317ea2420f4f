package cause

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
)

// maxDepth bounds the parts of a parameter's name that are looked at.
const maxDepth = 32

// model is a module with the parameters below it, by their names.
type model struct {
	path     string
	children []*model          // in the order of their names' first use
	byName   map[string]*model // the same
	top      bool              // a model by itself, not a part of one

	count    int    // of parameters
	leaves   int    // modules with parameters of their own
	bytes    uint64 // of their elements
	gradient uint64 // of the blocks of their gradients
	states   uint64 // of what optimizers keep for them
	shape    uint64 // of the parameters' names below this module and their sizes
}

// modelOf makes the tree of the parameters that a framework named. Buffers are no part of it.
func modelOf(parameters []report.Parameter) *model {
	root, known := &model{}, make(map[string]bool)
	for i := range parameters {
		p := &parameters[i]
		parts := strings.Split(p.Name, ".")
		if p.Category != "parameter" || len(parts) > maxDepth {
			continue
		}
		module := strings.Join(parts[:len(parts)-1], ".")
		leaf := !known[module]
		known[module] = true
		at := root
		for depth := range len(parts) - 1 {
			at = at.child(parts[depth])
			at.add(p, strings.Join(parts[depth+1:], "."), leaf)
		}
	}
	return root
}

func (m *model) child(name string) *model {
	if c := m.byName[name]; c != nil {
		return c
	}
	path := name
	if m.path != "" {
		path = m.path + "." + name
	}
	c := &model{path: path, top: m.path == ""}
	if m.byName == nil {
		m.byName = make(map[string]*model)
	}
	m.byName[name], m.children = c, append(m.children, c)
	return c
}

// add takes in a parameter that has this name below the module.
func (m *model) add(p *report.Parameter, name string, leaf bool) {
	m.count++
	if leaf {
		m.leaves++
	}
	m.bytes += p.Bytes
	m.gradient += p.GradBlock
	_, states := p.StateBytes()
	m.states += states
	h := fnv.New64a()
	h.Write(strconv.AppendUint([]byte(name+" "), p.Bytes, 10))
	m.shape += h.Sum64() // the same whatever the order
}

func (m *model) trained() bool { return m.states > 0 || m.gradient > 0 }

// each visits the modules from the top, as far as visit says to go on below one.
func (m *model) each(visit func(m *model) (deeper bool)) {
	for _, c := range m.children {
		if visit(c) {
			c.each(visit)
		}
	}
}

// without returns a path with its numbers taken out, by which the layers of a model are alike.
func without(path string) string {
	parts := strings.Split(path, ".")
	for i, part := range parts {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, ".")
}

// Copy is a module whose parameters have the names and sizes of those of a module that is trained, and that is not
// trained itself.
type Copy struct {
	Module, Of string // paths
	Count      int    // of parameters
	Bytes      uint64 // of their elements
}

// minParameters is how many parameters of the same names and sizes are no coincidence.
const minParameters = 4

// Find looks for both kinds of causes among the parameters of a training, which may be nil; those with most memory
// first.
func Find(t *report.Training) ([]Copy, []Idle) {
	if t == nil {
		return nil, nil
	}
	root := modelOf(t.Parameters)
	return copies(root), untrained(t, root)
}

// copies lists models, or parts right below one, of which one is trained and another has the same parameters, such as a
// moving average, a teacher or a reference model.
func copies(root *model) (list []Copy) {
	trained := make(map[uint64]*model)
	root.each(func(m *model) bool {
		if m.trained() && m.count >= minParameters && trained[m.shape] == nil {
			trained[m.shape] = m
		}
		return m.top
	})
	root.each(func(m *model) bool {
		of := trained[m.shape]
		if m.trained() || of == nil || m.count < minParameters {
			return m.top
		}
		if without(of.path) != without(m.path) { // else both are layers of one model, some of which are frozen
			list = append(list, Copy{m.path, of.path, m.count, m.bytes})
		}
		return false
	})
	slices.SortStableFunc(list, func(a, b Copy) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// Idle is a module that takes part in passes and that no optimizer trains.
type Idle struct {
	Module      string
	Activations uint64 // that its forward pass left behind at the peak
	Gradients   uint64 // of its parameters
}

// untrained lists the largest modules without a state of an optimizer that have gradients, or activations that no
// backward pass goes through at the peak; nil where it is not certain what optimizers train, as those without states.
func untrained(t *report.Training, root *model) (list []Idle) {
	if t.Modules == nil {
		return nil
	}
	withStates := 0
	for _, c := range root.children {
		if c.states > 0 {
			withStates++
		}
	}
	if t.OptimizerCount == 0 || uint64(withStates) < t.OptimizerCount {
		return nil
	}
	root.each(func(m *model) bool {
		if m.states > 0 {
			return true
		}
		if idle := idleOf(t, m); idle.Activations+idle.Gradients > 0 {
			list = append(list, idle)
		}
		return false
	})
	slices.SortStableFunc(list, func(a, b Idle) int {
		return cmp.Compare(b.Activations+b.Gradients, a.Activations+a.Gradients)
	})
	return list
}

// idleOf is what a module holds that no optimizer trains.
func idleOf(t *report.Training, m *model) Idle {
	idle := Idle{Module: m.path, Gradients: m.gradient}
	node, feature := find(t.Modules, m.path), slices.Index(t.Categories, "Feature maps")
	if node == nil || feature < 0 {
		return idle
	}
	// What a backward pass goes through may lead to something that is trained, as a frozen network in a loss does.
	if m.gradient > 0 || !node.Backward && holders(node, feature) >= max(2, (m.leaves+1)/2) {
		if held := node.Moment("peak"); feature < len(held) {
			idle.Activations = held[feature]
		}
	}
	return idle
}

// holders counts the modules that hold something of a category at the peak themselves. Without gradients a forward pass
// leaves its result, and what it was asked to return beside it; for a backward pass most modules leave something.
func holders(m *report.Module, category int) (n int) {
	for _, v := range m.Moments {
		if v.Moment == "peak" && v.Own[category] > 0 {
			n++
		}
	}
	for i := range m.Children {
		n += holders(&m.Children[i], category)
	}
	return n
}

func find(m *report.Module, path string) *report.Module {
	for i := range m.Children {
		c := &m.Children[i]
		if c.Path == path {
			return c
		}
		if strings.HasPrefix(path, c.Path+".") {
			return find(c, path)
		}
	}
	return nil
}
