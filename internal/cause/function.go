package cause

import (
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
)

const (
	// functionDepth is how deep in the program a function must be to say anything: below what runs all of it.
	functionDepth = 3
	// functionShare is the least part of the whole that it holds, as a divisor.
	functionShare = 2
	maxFunctions  = 64 // of a stack are looked at
)

// functionNode is a function of the program's, by what called it, with all that it calls.
type functionNode struct {
	frame    *callstack.Frame
	children map[functionKey]*functionNode
	sites    map[dividedPlace]uint64 // innermost lines of the program's below it
	bytes    uint64
	modules  uint64 // of it, what modules hold
}

type functionKey struct{ name, file string }

type dividedPlace struct {
	file string
	line int
}

// FunctionOf finds the function in which the call stacks of most memory come together: on the way down from the
// outermost one, the last that holds at least half of what the one above it does. nil where that is a line that holds
// most by itself, where modules hold it, which say more, or where it is what runs all of the program.
func FunctionOf(r *profile.Resolver, list []profile.Held) *report.VerdictShare {
	root := &functionNode{}
	for i := range list {
		root.add(r, &list[i])
	}
	node, depth := root, 0
	for {
		below := node.heaviest()
		if below == nil || below.bytes < node.bytes-node.bytes/2 || below.bytes < root.bytes/functionShare {
			break
		}
		node, depth = below, depth+1
	}
	if depth < functionDepth || node.modules > node.bytes/4 {
		return nil
	}
	for _, bytes := range node.sites {
		if bytes > node.bytes/2 {
			return nil
		}
	}
	return &report.VerdictShare{By: "function", Name: r.Stacks.Classifier.Function(node.frame), Bytes: node.bytes,
		Share: float64(node.bytes) / float64(max(root.bytes, 1))}
}

func (n *functionNode) add(r *profile.Resolver, h *profile.Held) {
	n.bytes += h.Bytes
	all := r.Stacks.Of(callstack.PairOf(profile.StackID(nil, &h.Origin))).All
	site, last, depth := dividedPlace{}, functionKey{}, 0
	for _, f := range all {
		if f.User && f.IsPython() {
			site = dividedPlace{f.File, f.Line}
			break
		}
	}
	for _, f := range slices.Backward(all) {
		key := functionKey{f.Function, f.File}
		if !f.User || !f.IsPython() || key == last || depth == maxFunctions { // one that calls itself is one
			continue
		}
		if n.children == nil {
			n.children = make(map[functionKey]*functionNode)
		}
		if n.children[key] == nil {
			n.children[key] = &functionNode{frame: f, sites: make(map[dividedPlace]uint64)}
		}
		n, last, depth = n.children[key], key, depth+1
		n.bytes += h.Bytes
		n.sites[site] += h.Bytes
		if h.Module != 0 {
			n.modules += h.Bytes
		}
	}
}

// heaviest is the function that holds most of those that are called, of equals the first by name.
func (n *functionNode) heaviest() (best *functionNode) {
	for _, c := range n.children {
		if best == nil || c.bytes > best.bytes || c.bytes == best.bytes && c.frame.Function < best.frame.Function {
			best = c
		}
	}
	return best
}
