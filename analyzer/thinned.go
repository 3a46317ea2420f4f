package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// addThinned adds what was left out of a thinned trace to the counts of what was allocated, and says from when on the
// trace is whole. A filter may have hidden what was left out, so with one the counts are of what is there.
func (q *query) addThinned(s *report.Summary, info trace.Info) {
	window := q.replayer.window
	t := trace.ThinnedFrom(info)
	if t.UntilSeq == 0 || window != nil && window.fromNS >= t.UntilTime { // nothing was left out of the window
		return
	}
	s.Thinned = &report.Thinned{UntilTimeNS: t.UntilTime, LeftOutEvents: t.Events}
	// of a part of what was left out the counts are not known
	if q.accounts.filter != nil || window != nil && (window.fromNS > 0 || window.toNS < t.UntilTime) {
		return
	}
	s.Steps.Count += t.Steps
	s.Epochs.Count += t.Epochs
	for _, b := range t.Blocks {
		for _, l := range levelsOf(s, b) {
			l.AllocCount += b.Count
			l.FreeCount += b.Count
			l.AllocBytes += b.Bytes
		}
		if l, ok := s.Other[b.Account]; ok {
			l.AllocCount, l.FreeCount, l.AllocBytes = l.AllocCount+b.Count, l.FreeCount+b.Count, l.AllocBytes+b.Bytes
			s.Other[b.Account] = l
		}
	}
}

// levelsOf returns the levels that blocks count with: of the run, and of their device.
func levelsOf(s *report.Summary, b trace.ThinnedBlocks) []*report.Level {
	var list []*report.Level
	switch b.Account {
	case report.LevelFramework:
		list = append(list, &s.Framework)
	case report.LevelDriver:
		list = append(list, &s.Driver)
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Index != b.Device {
			continue
		}
		switch b.Account {
		case report.LevelFramework:
			list = append(list, &d.Framework)
		case report.LevelDriver:
			list = append(list, &d.Driver)
		}
	}
	return list
}
