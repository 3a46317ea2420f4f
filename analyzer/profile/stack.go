package profile

import (
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/report"
)

// ByStack tells blocks apart by both of their call stacks. It is no grouping for people.
var ByStack = Grouping{Name: "stack", ByStack: true,
	ID:  func(_ *Resolver, o *Origin) uint64 { return callstack.Pair{Native: o.Stack, Python: o.PyStack}.ID() },
	Key: func(_ *Resolver, id uint64) string { return report.Number(id) }}
