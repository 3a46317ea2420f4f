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
	list    []graph    // passes that a backward pass may still go through, in their order
	keep    int        // how many there may be before those that hold nothing are dropped
	seen    uint64     // the latest block's operator
	gone    graph      // pass that a backward pass went through last
	counted bool       // a backward pass allocated
	begun   heap.Share // passes
	// stacks with which passes began that a backward pass went through
	trained map[callstack.Pair]bool
	scratch map[uint32]bool // live blocks of passes that are a library's scratch memory, which no graph has
	// live blocks that code outside of passes made last before a pass, by id: what it reads, which its graph saves
	inputs map[uint32]uint32 // the pass's number
	recent []uint32          // such blocks since the latest pass began, no more than mostInputs
}

// Ending is what is known of the end of what was recorded.
type Ending struct {
	TimeNS int64
	Over   bool // the program ended by itself, without a failure: no backward pass was to come
	Graphs bool // its tensors were seen to have graphs
	// what the program's tensors held then, if none of them had a graph; else 0
	GraphlessBytes uint64
}

// graph is one forward pass.
type graph struct {
	run, to     uint32 // it, and the code outside of its module that follows
	number      uint64 // of the pass, from 1
	first, last uint64 // operators
	from        callstack.Pair
	bytes       heap.Share // of its blocks
	blocks      heap.Share
	result      heap.Share // bytes of the latest block, while it is live
	pair        heap.Share // the most bytes that a block and the one before it had
	latest      uint32     // block: its id, plus one; 0: it is gone
	before      uint64     // size of the latest block
	inputs      int        // live blocks that it may have read
	allocs      uint64
}

const (
	// leastGraph is the least number of a pass's blocks, and of its operators, that are a graph and no results.
	leastGraph = 4
	// graphPart is the least part of a pass's allocations, as a divisor, that stays in a graph.
	graphPart  = 3
	graphsKept = 64
	// mostInputs is how many blocks before a pass may be its inputs: a batch of a few tensors.
	mostInputs = 4
)

// passBlock is a new block as the graphs see it.
type passBlock struct {
	*heap.Block
	id      uint32
	run     uint32 // number of the pass that made it
	after   bool   // of code outside of the module whose pass the one before it was
	phase   uint8
	of      callstack.Operator
	scratch bool
}

// opened takes in a new block; epoch is that of the account's total before it.
func (g *graphs) opened(b *passBlock, epoch uint64) {
	switch {
	case b.phase == phaseForward && b.scratch:
		if g.scratch == nil {
			g.scratch = make(map[uint32]bool)
		}
		g.scratch[b.id] = true
	case b.phase == phaseForward && !b.of.Backward:
		v := g.passOf(b, epoch)
		v.last, g.seen = b.of.Number, b.of.Number
		v.allocs++
		v.bytes.Grow(b.Size, epoch)
		v.blocks.Grow(1, epoch)
		v.result.Shrink(v.result.Current, epoch)
		v.result.Grow(b.Size, epoch)
		if pair := v.before + b.Size; pair > v.pair.Current {
			v.pair.Grow(pair-v.pair.Current, epoch)
		}
		v.latest, v.before = b.id+1, b.Size
	case b.phase == phaseBackward:
		g.counted = true
		if b.of.Backward {
			g.differentiated(b.of.Number)
		}
	case passOf(b.phase) == phaseOther:
		if len(g.recent) == mostInputs {
			g.recent = slices.Delete(g.recent, 0, 1)
		}
		g.recent = append(g.recent, b.id)
	}
}

// ownInputs gives a new pass the blocks made last before it, as far as they are live.
func (g *graphs) ownInputs(v *graph) {
	if g.inputs == nil {
		g.inputs = make(map[uint32]uint32)
	}
	for _, id := range g.recent {
		g.inputs[id] = v.run
	}
	v.inputs, g.recent = len(g.recent), g.recent[:0]
}

// find returns the pass that the one with a number is part of; nil: there is none.
func (g *graphs) find(run uint32) *graph {
	n, _ := slices.BinarySearchFunc(g.list, run, func(v graph, run uint32) int { return int(v.to) - int(run) })
	if n == len(g.list) || g.list[n].run > run {
		return nil
	}
	return &g.list[n]
}

// passOf returns the pass that a block is of, which may be a new one.
func (g *graphs) passOf(b *passBlock, epoch uint64) *graph {
	if n := len(g.list); n > 0 {
		v := &g.list[n-1]
		if b.after && v.to+1 == b.run {
			v.to = b.run
		}
		if v.to == b.run {
			return v
		}
	}
	g.retire(epoch)
	g.begun.Grow(1, epoch)
	v := graph{run: b.run, to: b.run, number: g.begun.Current, first: b.of.Number,
		from: callstack.Pair{Native: b.Stack, Python: b.PyStack}}
	if b.of.Number == g.seen { // it was recorded before
		v.first++
	}
	g.ownInputs(&v)
	g.list = append(g.list, v)
	return &g.list[len(g.list)-1]
}

// differentiated forgets the pass that recorded an operator.
func (g *graphs) differentiated(operator uint64) {
	if g.gone.has(operator) {
		return
	}
	for i := len(g.list) - 1; i >= 0; i-- {
		if g.list[i].has(operator) {
			g.gone = g.list[i]
			if g.trained == nil {
				g.trained = make(map[callstack.Pair]bool)
			}
			g.trained[g.gone.from] = true
			g.list = slices.Delete(g.list, i, i+1)
			return
		}
	}
}

func (v *graph) has(operator uint64) bool { return v.first <= operator && operator <= v.last }

// closed takes in the end of a block that the pass with the number run made.
func (g *graphs) closed(run, id uint32, size, epoch uint64) {
	if g.scratch[id] {
		delete(g.scratch, id)
		return
	}
	if by, found := g.inputs[id]; found {
		delete(g.inputs, id)
		if v := g.find(by); v != nil {
			v.inputs--
		}
	} else if n := slices.Index(g.recent, id); n >= 0 {
		g.recent = slices.Delete(g.recent, n, n+1)
	}
	v := g.find(run)
	if v == nil {
		return
	}
	v.bytes.Shrink(size, epoch)
	v.blocks.Shrink(1, epoch)
	if v.latest == id+1 {
		v.latest = 0
		v.result.Shrink(v.result.Current, epoch)
	}
}

// forget drops all passes.
func (g *graphs) forget() { g.list, g.scratch, g.inputs, g.recent = nil, nil, nil, nil }

// retire drops passes that hold nothing and held nothing at the peak, so that as many are kept as have blocks.
func (g *graphs) retire(epoch uint64) {
	if len(g.list) < max(g.keep, graphsKept) {
		return
	}
	g.list = slices.DeleteFunc(g.list, func(v graph) bool { return v.bytes.Current == 0 && v.bytes.Peak(epoch) == 0 })
	g.keep = 2 * len(g.list)
}

// keeps reports whether so many blocks of a pass are a graph.
func (v *graph) keeps(blocks uint64) bool {
	return blocks >= max(leastGraph, v.allocs/graphPart) && v.last >= v.first+leastGraph-1
}

// staying is what a pass would have held at the peak without a graph, as far as known: what outlived the graph, or its
// result. The latest pass, which may have run then, needed what an operator reads beside what it makes.
func (v *graph) staying(latest bool, epoch uint64) uint64 {
	n := v.result.Peak(epoch)
	if !v.keeps(v.blocks.Current) {
		n = max(n, v.bytes.Current)
	}
	if latest {
		n = max(n, v.pair.Peak(epoch))
	}
	return min(n, v.bytes.Peak(epoch))
}

// trains returns the program's lines of which a backward pass went through a pass, "" where one's is not known.
func (g *graphs) trains(stacks *callstack.Stacks) map[string]bool {
	sites := make(map[string]bool)
	for from := range g.trained {
		sites[stacks.ModuleCaller(from)] = true
	}
	return sites
}

// value is what was kept at the peak for backward passes that never came, and abandoned the same of lines of which
// backward passes went through other passes; nil if nothing. Of a pass that still keeps its graph at the end, nobody
// knows whether a backward pass was to come, unless the program had come to its own end; nor whether it is a graph, and
// no results that hooks collected, unless graphs were seen or its inputs are there too. Of the pass that ran at the
// peak, or had just ended, a line that trains keeps nothing that it should not.
func (g *graphs) value(stacks *callstack.Stacks, end Ending, epoch uint64) (never, abandoned *report.Undifferentiated) {
	if g.counted && g.gone.last == 0 { // backward passes lead to no operator here
		return nil, nil
	}
	over, latest := g.surelyEnded(end, epoch)
	trains := g.trains(stacks)
	var list [2]keptGraphs
	for i := range g.list {
		p := &g.list[i]
		if !p.keeps(p.blocks.Peak(epoch)) || p.keeps(p.blocks.Current) && !over {
			continue
		}
		site, of := stacks.ModuleCaller(p.from), &list[0]
		if trains[site] {
			if p.number == g.begun.Peak(epoch) {
				continue
			}
			of = &list[1]
		}
		of.add(site, p.bytes.Peak(epoch)-p.staying(i == latest, epoch))
	}
	return list[0].value(), list[1].value()
}

// surelyEnded reports whether no backward pass was to come for what still keeps a graph at the end; latest is the
// index of the latest pass that had something at the peak, -1 without one.
func (g *graphs) surelyEnded(end Ending, epoch uint64) (over bool, latest int) {
	var still uint64
	passes, saved := 0, 0
	latest = -1
	for i := range g.list {
		v := &g.list[i]
		if v.bytes.Peak(epoch) > 0 {
			latest = i
		}
		if v.keeps(v.blocks.Current) {
			still += v.bytes.Current
			passes++
			if v.inputs > 0 {
				saved++
			}
		}
	}
	return end.Over && (end.Graphs || 2*saved >= passes && end.GraphlessBytes < still/2), latest
}

// keptGraphs adds up what passes kept.
type keptGraphs struct {
	report.Undifferentiated
	most uint64 // of one pass
}

func (k *keptGraphs) add(site string, bytes uint64) {
	k.Passes++
	k.Bytes += bytes
	if bytes > k.most {
		k.most, k.Site = bytes, site
	}
}

func (k *keptGraphs) value() *report.Undifferentiated {
	if k.Passes == 0 {
		return nil
	}
	return &k.Undifferentiated
}
