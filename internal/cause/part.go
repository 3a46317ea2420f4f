package cause

import (
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// noteStartedLate describes what is unknown of a program that used CUDA before recording began.
func noteStartedLate(s *report.Summary, info trace.Info) string {
	if info[trace.StartKey] != trace.StartedLate {
		return ""
	}
	text :=
		"The program used CUDA before recording began: of memory from before only PyTorch's blocks are known, by PyTorch's own account"
	if n := s.Health.UnmatchedFrees + s.Health.UnmatchedMaps; n > 0 {
		text += "; " + report.Count(n, "call", "calls") +
			" gave back driver memory from before, so the driver level is too small"
	}
	return text + "."
}

// noteSnapshot describes what is missing in a trace that holds only the live blocks of one moment.
func noteSnapshot(s *report.Summary, _ trace.Info) string {
	if !s.Process.Snapshot {
		return ""
	}
	return "This trace holds what was live when it was made, and nothing of what had come and gone by then: its peak is that moment."
}
