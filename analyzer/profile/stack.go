package profile

import "memtrace/analyzer/report"

// ByStack tells blocks apart by both of their call stacks. It is no grouping for people.
var ByStack = Grouping{Name: "stack", ByStack: true,
	ID:  StackID,
	Key: func(_ *Resolver, id uint64) string { return report.Number(id) }}
