package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/trace"
)

// maxOOMStacks bounds the call stacks that are named inside of the program: what memory runs out for must not take more of it.
const maxOOMStacks = 1 << 14

// oomPlaces divides an OOM event's blocks by the place that asked for them. Inside of the program no file is looked into, so that only Python's places have names there;
// what has none is told by its thread.
var oomPlaces = grouping{name: "site",
	id: func(r *resolver, o *origin) uint64 {
		if id := stackID(r, o); r.named(id) {
			return id
		}
		return placeIsThread | uint64(o.thread)
	},
	key: func(r *resolver, id uint64) string {
		if id&placeIsThread != 0 {
			return "thread " + withoutTID(threadKey(r, id&^placeIsThread))
		}
		return siteKey(r, id)
	}}

// placeIsThread marks identifiers that are no pair of stacks: no trace has so many native ones.
const placeIsThread = 1 << 63

// oomPlace names the place of the program, or the step of a gradient computation, that a call was made for; "" if it is not known.
func (c *collector) oomPlace(e *trace.Event) string {
	if !c.ooms.places {
		return ""
	}
	stack := c.resolver.stacks.Of(callstack.Pair{Native: e.Stack, Python: e.PyStack})
	if at := stack.Site; at != nil && at.Function != "" && (at.User || at.Fold == callstack.FoldNode) {
		return stack.Key
	}
	return ""
}

// ownPlaces reports whether some of the identifiers are places of the program itself.
func (n *keyNames) ownPlaces(g int) bool {
	for id := range n.known[g] {
		if id&placeIsThread == 0 {
			if _, user := n.resolver.placeOf(id); user {
				return true
			}
		}
	}
	return false
}
