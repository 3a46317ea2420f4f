package oom

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
)

// LoadedTwice returns how many bytes at the peak of a framework's blocks were tensors read from a checkpoint that the
// program held a second time: they have no name, while its parameters and optimizer state have theirs.
func LoadedTwice(d *profile.AccountStats, r *profile.Resolver) uint64 {
	var seen report.OOMSeen
	for i := range d.Cells.List {
		v := &d.Cells.List[i]
		if bytes := v.Peak(d.Total.Epoch); bytes > 0 {
			seen.Add(bytes, v.Origin.Category, func() bool {
				pair := callstack.PairOf(profile.StackID(nil, &v.Origin))
				return v.Origin.PyStack != 0 && callstack.LoadsCheckpoint(r.Stacks.Of(pair).All)
			})
		}
	}
	return seen.LoadedTwice()
}
