package heap

import (
	"memtrace/analyzer/report"
)

func LevelOf(m *Meter) report.Level {
	return report.Level{PeakBytes: m.Peak, PeakTimeNS: m.PeakTime, LiveBytes: m.Current, AllocCount: m.Allocs,
		FreeCount: m.Frees, AllocBytes: m.AllocBytes,
		FailedCount: m.Refused}
}
