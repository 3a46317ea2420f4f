package profile

import "memtrace/analyzer/report"

// ByStack tells blocks apart by both of their call stacks. It is no grouping for people.
var ByStack = Grouping{Name: "stack", ByStack: true,
	ID:  StackID,
	Key: func(_ *Resolver, id uint64) string { return report.Number(id) }}

// StackCount is what a pair of stacks amounts to over the whole run.
type StackCount struct {
	ID     uint64
	Origin *Origin // nil for retired cells, of which only the stack is known
	Live   uint64
	Older  bool // what is older than the part of the run that was asked for, to be taken off: the counts are negative
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
