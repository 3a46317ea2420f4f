package cause

import (
	"fmt"
	"time"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// noteThinned describes the basis of the figures of a thinned trace, and where a limit of its size was exceeded.
func noteThinned(s *report.Summary, info trace.Info) string {
	text := ""
	if t := s.Thinned; t != nil {
		text = fmt.Sprintf(
			"The trace was compacted. Of its first %s it has only what was live at peaks, marks, samples of the device and when memory ran out; %s left out. "+
				"Peaks, what is live, and counts of all allocations are exact; iterations, lifetimes, growth and counts by owner are of the time after.",
			time.Duration(t.UntilTimeNS).Round(time.Millisecond), report.Count(t.LeftOutEvents, "event is",
				"events are"))
	}
	if why := info[trace.LimitKey]; why != "" {
		if text != "" {
			text += " "
		}
		text += "MEMTRACE_TRACE_MAX was " + why + "."
	}
	return text
}
