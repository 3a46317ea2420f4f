package profile

import (
	"memtrace/internal/callstack"
)

// PlaceOf returns the site of a pair of stacks: its key, and whether it is the program's own code.
func (r *Resolver) PlaceOf(id uint64) (key string, user bool) {
	stack := r.Stacks.Of(callstack.PairOf(id))
	return stack.Key, stack.Site != nil && stack.Site.User
}

// Named reports whether the function of a site is known.
func (r *Resolver) Named(id uint64) bool {
	site := r.Stacks.Of(callstack.PairOf(id)).Site
	return site != nil && site.Function != ""
}
