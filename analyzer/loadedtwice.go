package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/trace"
)

// loadedTwice returns how many bytes at the peak were tensors read from a checkpoint that the program held a second
// time: they have no name, while its parameters and optimizer state have theirs.
func (c *collector) loadedTwice() uint64 {
	d := c.details[heap.AccountFramework]
	if d == nil || c.kept == nil {
		return 0
	}
	var loaded, named uint64
	for i := range d.Cells.List {
		v := &d.Cells.List[i]
		bytes := v.Peak(d.Total.Epoch)
		switch {
		case bytes == 0:
		case keptByName(v.Origin.Category):
			named += bytes
		case v.Origin.Category == trace.CategoryNone && v.Origin.PyStack != 0:
			if callstack.LoadsCheckpoint(c.resolver.Stacks.Of(callstack.PairOf(profile.StackID(nil, &v.Origin))).All) {
				loaded += bytes
			}
		}
	}
	return min(loaded, named)
}

// keptByName reports whether a checkpoint may hold what has a name of this category.
func keptByName(c trace.Category) bool {
	return c == trace.CategoryParameter || c == trace.CategoryBuffer || c == trace.CategoryOptimizer
}
