package profile

import "memtrace/analyzer/report"

// ByStack distinguishes blocks by both of their call stacks. It is not offered to users.
var ByStack = Grouping{Name: "stack", ByStack: true,
	ID:  StackID,
	Key: func(_ *Resolver, id uint64) string { return report.Number(id) }}

// StackCount is the totals of a pair of stacks over the whole run.
type StackCount struct {
	ID     uint64
	Origin *Origin // nil for retired cells, of which only the stack is known
	Live   uint64
	Older  bool // counts before the requested part of the run, to be subtracted: the counts are negative
	Counts
}

// StackCounts lists the pairs of stacks of all cells, some of them in several pieces.
func (c *Cells) StackCounts() []StackCount {
	var list []StackCount
	for n := range c.List {
		if v := &c.List[n]; v.Allocs > 0 {
			list = append(list, StackCount{ID: StackID(nil, &v.Origin), Origin: &v.Origin, Live: v.Current,
				Counts: v.Counts})
		}
	}
	for id, v := range c.Retired(&ByStack) {
		list = append(list, StackCount{ID: id, Counts: v})
	}
	return list
}
