package oom

import (
	"strings"

	"memtrace/internal/callstack"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// maxStacks bounds the call stacks that are named inside of the program: what memory runs out for must not take more of
// it.
const maxStacks = 1 << 14

// placeGrouping divides an OOM event's blocks by the place that asked for them. Inside of the program no file is looked
// into, so that only Python's places have names there; what has none is told by its thread.
var placeGrouping = profile.Grouping{Name: "site",
	ID: func(r *profile.Resolver, o *profile.Origin) uint64 {
		if id := profile.StackID(r, o); r.Named(id) {
			return id
		}
		return placeIsThread | uint64(o.Thread)
	},
	Key: func(r *profile.Resolver, id uint64) string {
		if id&placeIsThread != 0 {
			return "thread " + profile.WithoutTID(profile.ThreadKey(r, id&^placeIsThread))
		}
		return profile.SiteKey(r, id)
	}}

// placeIsThread marks identifiers that are no pair of stacks: no trace has so many native ones.
const placeIsThread = 1 << 63

// placeOf names the place of the program, or the step of a gradient computation, that a call was made for; "" if it is
// not known.
func (t *Tracker) placeOf(e *trace.Event) string {
	if !t.Places {
		return ""
	}
	stack := t.Resolver.Stacks.Of(callstack.Pair{Native: e.Stack, Python: e.PyStack})
	switch at := stack.Site; {
	case at == nil || at.Function == "":
	case at.User:
		return stack.Key
	case at.Fold == callstack.FoldNode:
		return "a step of the backward pass (" + stack.Key + ")"
	}
	return ""
}

// backwardOf names the place of the program whose gradients were computed when a framework's allocator gave up, in code
// that is none of the program's; "" if it is not known.
func (t *Tracker) backwardOf(e *trace.Event) string {
	if !t.Places || t.Links == nil || e.PyStack != 0 || e.Flags&trace.FlagBackward == 0 {
		return ""
	}
	linked := t.Links.Stack(e)
	if linked&callstack.LinkedBit == 0 {
		return ""
	}
	of := t.Resolver.Stacks.Of(callstack.Pair{Native: e.Stack, Python: linked})
	if of.Site == nil || !of.Site.User {
		return ""
	}
	return "the backward pass" + strings.TrimPrefix(of.Key, "backward")
}

// ownPlaces reports whether some of the identifiers are places of the program itself.
func (n *keyNames) ownPlaces(g int) bool {
	for id := range n.known[g] {
		if id&placeIsThread == 0 {
			if _, user := n.resolver.PlaceOf(id); user {
				return true
			}
		}
	}
	return false
}
