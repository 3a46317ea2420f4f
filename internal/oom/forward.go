package oom

import (
	"slices"

	"memtrace/internal/callstack"
	"memtrace/internal/heap"
)

// findPasses looks whether the running iteration has several forward passes, and lets it begin with the last of them.
// A pass is what the call stacks say that return: one through a module, and beside it one outside of all modules,
// which lies in the loop around them. Where nothing outside is live, a single stack that returns is a result that is
// kept; several may be a loop within one pass. Where code outside returns less often than that in modules, as around a
// recurrent network, each of its rounds is a pass.
func (c *composer) findPasses() {
	// a workspace, which a module makes once, may be larger than what all passes made
	passes := heaviest(c.byStack, func(r *recurrence) bool { return r.inModule && r.count > 1 })
	if passes == nil {
		return
	}
	if c.isLoop(passes) {
		return
	}
	var anchor *recurrence
	returning := 0
	for _, r := range c.byStack {
		if r.inModule && r.count+1 >= passes.count {
			returning++
		}
		if !r.inModule && r.count+1 >= passes.count && r.count <= passes.count+1 && r.last > passes.first &&
			(anchor == nil || r.first < anchor.first) {
			anchor = r
		}
	}
	if anchor == nil {
		anchor = c.around(passes)
	}
	if anchor == nil && returning <= 2 && !c.isShared(passes) {
		anchor = passes
	}
	if anchor == nil {
		return
	}
	c.v.Passes = anchor.count
	if c.was == 0 {
		c.was = anchor.first
	}
	c.begin = max(c.begin, anchor.last-1)
}

// around returns the code outside of all modules whose rounds are passes, if code in modules returns several times in
// each. In every round the modules do the same: what ran in some of them alone is little, or the rounds are layers of
// one pass. nil: there is none.
func (c *composer) around(passes *recurrence) (anchor *recurrence) {
	for _, r := range c.byStack {
		if !r.inModule && r.count > leastRuns && 2*r.count <= passes.count && r.last > passes.first &&
			r.first < passes.last && (anchor == nil || r.count > anchor.count ||
			r.count == anchor.count && r.first < anchor.first) {
			anchor = r
		}
	}
	if anchor == nil {
		return nil
	}
	var again, some struct{ stacks, bytes uint64 }
	for _, r := range c.byStack {
		if !r.inModule || r.last < anchor.first {
			continue
		}
		of := &some
		if r.count+1 >= anchor.count {
			of = &again
		}
		if of.stacks++; r.count > 1 { // a workspace is made once
			of.bytes += r.bytes
		}
	}
	if 2*some.stacks > again.stacks || 10*some.bytes > again.bytes || !c.alternate(anchor, passes) {
		return nil
	}
	return anchor
}

// alternate reports whether code ran between any two runs of other code.
func (c *composer) alternate(anchor, between *recurrence) bool {
	var outer, inner []uint64
	c.each(func(_ uint32, b *heap.Block, _ string) {
		if b.Seq <= c.begin {
			return
		}
		switch c.byStack[callstack.Pair{Native: b.Stack, Python: b.PyStack}] {
		case anchor:
			outer = append(outer, b.Seq)
		case between:
			inner = append(inner, b.Seq)
		}
	})
	slices.Sort(outer)
	slices.Sort(inner)
	for i := 1; i < len(outer); i++ {
		n, _ := slices.BinarySearch(inner, outer[i-1])
		if n == len(inner) || inner[n] > outer[i] {
			return false
		}
	}
	return true
}

// isShared reports whether code that ran several times is a part of others that ran far less often each, and as often
// together: as what the heads of each layer share.
func (c *composer) isShared(passes *recurrence) bool {
	others := uint64(0)
	for _, r := range c.byStack {
		if r.inModule && 4*r.count <= passes.count && r.first > passes.first && r.last < passes.last {
			others += r.count
		}
	}
	return 2*others >= passes.count
}

// isLoop reports whether code that ran several times did so in a single pass, as an activation function that all layers
// share: between its runs many others ran, each of them once.
func (c *composer) isLoop(passes *recurrence) bool {
	once := uint64(0)
	for _, r := range c.byStack {
		if r.inModule && r.count == 1 && r.first > passes.first && r.last < passes.last {
			once++
		}
	}
	return 2*once >= passes.count
}

// heaviest is the recurrence with most bytes among those that are asked for; of equal ones the first.
func heaviest(in map[callstack.Pair]*recurrence, of func(*recurrence) bool) (top *recurrence) {
	for _, r := range in {
		if of(r) && (top == nil || r.bytes > top.bytes || r.bytes == top.bytes && r.first < top.first) {
			top = r
		}
	}
	return top
}
