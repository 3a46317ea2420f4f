package analyzer

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

// loadedTwice returns how many bytes at the peak were tensors read from a checkpoint that the program held a second
// time: they have no name, while its parameters and optimizer state have theirs.
func (c *collector) loadedTwice() uint64 {
	d := c.details[heap.AccountFramework]
	if d == nil || c.kept == nil {
		return 0
	}
	var seen report.OOMSeen
	for i := range d.Cells.List {
		v := &d.Cells.List[i]
		if bytes := v.Peak(d.Total.Epoch); bytes > 0 {
			seen.Add(bytes, v.Origin.Category, func() bool {
				return v.Origin.PyStack != 0 && callstack.LoadsCheckpoint(c.resolver.Stacks.Of(callstack.PairOf(profile.StackID(nil, &v.Origin))).All)
			})
		}
	}
	return seen.LoadedTwice()
}
