package training

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/rules"
	"memtrace/trace"
)

// Value is what reports are made of, by the rules of set. The iteration that runs stays open; end ends it.
// epoch is that of the account's total.
func (t *Tracker) Value(set *rules.Set, info trace.Info, parameters []report.Parameter, end Ending,
	epoch uint64) *report.Training {
	v := &report.Training{Level: t.Account.String(), Rules: set.Name, IterationsBy: t.by, Iterated: t.words,
		LeftOut: t.leftOut, OptimizerCount: t.optimizers, Parameters: parameters,
		Highest: t.highest, Phases: t.spans.values()}
	v.Adapters = make(map[string]string)
	for key, word := range info {
		if framework, found := strings.CutPrefix(key, "adapter."); found && !strings.Contains(framework, ".") {
			v.Adapters[framework] = word
		}
	}
	if t.by == report.IterationsByPeriod {
		v.Iterated += ", from " + t.resolver.Stacks.Of(t.anchor).Key
	}
	t.count(true)
	v.Iterations = slices.Clone(t.done)
	held := t.held
	if last := t.running(end.TimeNS); len(v.Iterations) == 0 || last.AllocCount+last.FreeCount > 0 {
		if last.Peak.Bytes > t.record || t.highest < 0 {
			v.Highest, held = len(v.Iterations), t.open.held
		}
		v.Iterations = append(v.Iterations, last)
	}
	columns := t.columns(v.Iterations)
	for i := range v.Iterations {
		v.Iterations[i] = arranged(v.Iterations[i], columns)
	}
	v.OutOfMemory = []report.OOMCategories{}
	for _, f := range t.failed {
		f.held.Held = arrange(f.held.Held, columns)
		v.OutOfMemory = append(v.OutOfMemory, f.held)
	}
	v.Categories = make([]string, len(columns))
	for i, class := range columns {
		v.Categories[i] = t.classes.names[class]
	}
	v.Modules = t.tree(held, columns)
	v.Undifferentiated, v.Abandoned = t.graphs.value(t.resolver.Stacks, end, epoch)
	return v
}

// columns lists the classes that ever held something, in the order of the rules; rules.Others is always there, at the
// end.
func (t *Tracker) columns(list []report.Iteration) []int {
	used := make([]bool, len(t.classes.names))
	for i := range list {
		for class, bytes := range list[i].Highest {
			used[class] = used[class] || bytes > 0
		}
	}
	others := int(t.classes.number(rules.Others))
	var columns []int
	for class := range used {
		if used[class] && class != others {
			columns = append(columns, class)
		}
	}
	return append(columns, others)
}

func arrange(held []uint64, columns []int) []uint64 {
	v := make([]uint64, len(columns))
	for i, class := range columns {
		v[i] = heap.ValueAt(held, class)
	}
	return v
}

// arranged is an iteration with its figures by column.
func arranged(i report.Iteration, columns []int) report.Iteration {
	i.Highest, i.End, i.Stayed = arrange(i.Highest, columns), arrange(i.End, columns), arrange(i.Stayed, columns)
	i.Peak.Held = arrange(i.Peak.Held, columns)
	for _, m := range []**report.IterationMoment{&i.Forward, &i.Backward, &i.Optimizer} {
		if *m != nil {
			copied := **m
			copied.Held = arrange(copied.Held, columns)
			*m = &copied
		}
	}
	return i
}

// tree makes the modules of an iteration's moments. nil if nothing belongs to a module.
func (t *Tracker) tree(held [momentCount]map[moduleClass]uint64, columns []int) *report.Module {
	column := make(map[uint16]int, len(columns))
	for i, class := range columns {
		column[uint16(class)] = i
	}
	root, known := &treeNode{}, false
	for m := range held {
		for at, bytes := range held[m] {
			name := t.modules.names[at.module]
			known = known || name != ""
			root.add(name, m, column[at.class], len(columns), bytes)
		}
	}
	if !known {
		return nil
	}
	for module, passed := range t.backward {
		if name := t.modules.names[module]; passed && name != "" {
			root.passed(name)
		}
	}
	v := root.value("", "", held, len(columns))
	return &v
}

// maxModuleDepth bounds how deep modules are nested; what is deeper stands in the last one's name. A name of a MiB may
// have half a million parts, each with a path.
const maxModuleDepth = 128

// treeNode is a module in the making.
type treeNode struct {
	children map[string]*treeNode
	own      [momentCount][]uint64
	backward bool // a backward pass allocated for it or for a module below it
}

// passed notes that a backward pass allocated for the module of a path, as far down as there are modules.
func (n *treeNode) passed(path string) {
	for _, part := range strings.SplitN(path, ".", maxModuleDepth) {
		if n = n.children[part]; n == nil {
			return
		}
		n.backward = true
	}
}

// add gives bytes to the module of a path.
func (n *treeNode) add(path string, moment, column, columns int, bytes uint64) {
	parts := []string{report.NoModule}
	if path != "" {
		parts = strings.SplitN(path, ".", maxModuleDepth)
	}
	for _, part := range parts {
		child := n.children[part]
		if child == nil {
			if n.children == nil {
				n.children = make(map[string]*treeNode)
			}
			child = &treeNode{}
			n.children[part] = child
		}
		n = child
	}
	if n.own[moment] == nil {
		n.own[moment] = make([]uint64, columns)
	}
	n.own[moment][column] += bytes
}

func (n *treeNode) value(name, path string, held [momentCount]map[moduleClass]uint64, columns int) report.Module {
	v := report.Module{Name: name, Path: path, Backward: n.backward, Moments: []report.ModuleBytes{},
		Children: []report.Module{}}
	for part, child := range n.children {
		below := part
		if path != "" {
			below = path + "." + part
		}
		v.Children = append(v.Children, child.value(part, below, held, columns))
	}
	for m := range held {
		if held[m] == nil {
			continue
		}
		b := report.ModuleBytes{Moment: momentNames[m], Own: make([]uint64, columns)}
		copy(b.Own, n.own[m])
		b.Subtree = slices.Clone(b.Own)
		for _, child := range v.Children {
			for i, bytes := range child.Moment(momentNames[m]) {
				b.Subtree[i] += bytes
			}
		}
		v.Moments = append(v.Moments, b)
	}
	slices.SortFunc(v.Children, func(a, b report.Module) int {
		return cmp.Or(cmp.Compare(report.SumOf(b.Moment(momentNames[atPeak])),
			report.SumOf(a.Moment(momentNames[atPeak]))), strings.Compare(a.Name, b.Name))
	})
	return v
}
