package training

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
)

// graphs follows what forward passes keep for their backward pass, to find those that none went through. A pass keeps a
// graph if the framework numbered its operators, as it does where it records them for autograd. A backward pass goes
// through it if it allocates for one of these operators.
type graphs struct {
	list    []graph // passes that a backward pass may still go through, in their order
	keep    int     // how many there may be before those that hold nothing are dropped
	seen    uint64  // the latest block's operator
	gone    graph   // pass that a backward pass went through last
	counted bool    // a backward pass allocated
}

// graph is one forward pass.
type graph struct {
	run         uint32
	first, last uint64 // operators
	from        callstack.Pair
	bytes       heap.Share // of its blocks
	blocks      heap.Share
	allocs      uint64
}

const (
	// leastGraph is the least number of a pass's blocks, and of its operators, that are a graph and no results.
	leastGraph = 4
	// graphPart is the least part of a pass's allocations, as a divisor, that stays in a graph.
	graphPart  = 3
	graphsKept = 64
)

// opened takes in a new block of a phase, made by an operator in the pass with the number run; epoch is that of the
// account's total before it.
func (g *graphs) opened(run uint32, phase uint8, b *heap.Block, of callstack.Operator, epoch uint64) {
	switch {
	case phase == phaseForward && !of.Backward:
		if n := len(g.list); n == 0 || g.list[n-1].run != run {
			g.retire(epoch)
			v := graph{run: run, first: of.Number, from: callstack.Pair{Native: b.Stack, Python: b.PyStack}}
			if of.Number == g.seen { // it was recorded before
				v.first++
			}
			g.list = append(g.list, v)
		}
		v := &g.list[len(g.list)-1]
		v.last, g.seen = of.Number, of.Number
		v.allocs++
		v.bytes.Grow(b.Size, epoch)
		v.blocks.Grow(1, epoch)
	case phase == phaseBackward:
		g.counted = true
		if of.Backward {
			g.differentiated(of.Number)
		}
	}
}

// differentiated forgets the pass that recorded an operator.
func (g *graphs) differentiated(operator uint64) {
	if g.gone.has(operator) {
		return
	}
	for i := len(g.list) - 1; i >= 0; i-- {
		if g.list[i].has(operator) {
			g.gone = g.list[i]
			g.list = slices.Delete(g.list, i, i+1)
			return
		}
	}
}

func (v *graph) has(operator uint64) bool { return v.first <= operator && operator <= v.last }

// closed takes in the end of a block that the pass with the number run made.
func (g *graphs) closed(run uint32, size, epoch uint64) {
	n, found := slices.BinarySearchFunc(g.list, run, func(v graph, run uint32) int { return int(v.run) - int(run) })
	if !found {
		return
	}
	v := &g.list[n]
	v.bytes.Shrink(size, epoch)
	v.blocks.Shrink(1, epoch)
}

// retire drops passes that hold nothing and held nothing at the peak, so that as many are kept as have blocks.
func (g *graphs) retire(epoch uint64) {
	if len(g.list) < max(g.keep, graphsKept) {
		return
	}
	g.list = slices.DeleteFunc(g.list, func(v graph) bool { return v.bytes.Current == 0 && v.bytes.Peak(epoch) == 0 })
	g.keep = 2 * len(g.list)
}

// isKept reports whether a pass kept a graph at the peak, and gave it up before the program ended: of one that did not,
// nobody knows whether a backward pass was to come.
func (v *graph) isKept(epoch uint64) bool {
	keeps := func(blocks uint64) bool { return blocks >= max(leastGraph, v.allocs/graphPart) }
	return keeps(v.blocks.Peak(epoch)) && !keeps(v.blocks.Current) && v.last >= v.first+leastGraph-1
}

// value is what was kept at the peak for backward passes that never came; nil if nothing.
func (g *graphs) value(stacks *callstack.Stacks, epoch uint64) *report.Undifferentiated {
	if g.counted && g.gone.last == 0 { // backward passes lead to no operator here
		return nil
	}
	var v report.Undifferentiated
	var most uint64
	for i := range g.list {
		if p := &g.list[i]; p.isKept(epoch) {
			v.Passes++
			v.Bytes += p.bytes.Peak(epoch)
			if p.bytes.Peak(epoch) > most {
				most, v.Site = p.bytes.Peak(epoch), stacks.ModuleCaller(p.from)
			}
		}
	}
	if v.Passes == 0 {
		return nil
	}
	return &v
}
