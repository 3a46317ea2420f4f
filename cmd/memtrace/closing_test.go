package main

import (
	"fmt"
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// Where memory ran out, the last lines of a run are what failed, what to try first, and where everything is.
func TestClosingLinesOfOutOfMemory(t *testing.T) {
	event := report.OOMEvent{Level: "framework", Outcome: report.OOMFailed, Sidecar: "t.bin.oom.1.txt",
		Advice: []report.Advice{{Rule: "activations", Text: "Half the batch gives back about 48.0 MiB."},
			{Rule: "null-gpu", Text: "This was the null GPU."}}}
	s := &report.Summary{Framework: report.Level{PeakBytes: 1 << 20, AllocCount: 1},
		OOM: report.OOM{Count: 1, Events: []report.OOMEvent{event}}}
	lines := closingLines("python", "", []readSummary{{"t.bin", s}}, 1)
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "Out of memory") ||
		lines[1] != "to try: Half the batch gives back about 48.0 MiB." ||
		lines[2] != "more about that moment: t.bin.oom.1.txt; next: memtrace report t.bin" {
		t.Errorf("%q", lines)
	}
	s.OOM.Events[0].Advice = event.Advice[1:]
	if lines := closingLines("python", "", []readSummary{{"t.bin", s}}, 1); len(lines) != 2 {
		t.Errorf("without advice: %q", lines)
	}
}

// Of large traces the closing lines have the figures alone, without places and categories.
func TestClosingLinesOfLargeRanks(t *testing.T) {
	var list []readSummary
	for rank, peak := range []uint64{1 << 30, 1 << 30, 3 << 30} {
		s := &report.Summary{Framework: report.Level{PeakBytes: peak, AllocCount: 1, AllocBytes: peak}}
		s.Process.Rank, s.Process.WorldSize = &rank, 3
		list = append(list, readSummary{fmt.Sprintf("/gone/rank%d.bin", rank), s})
	}
	lines := closingLines("python", "", list, len(list))
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "3 processes, with peaks from 1.00 GiB to 3.00 GiB; 2 of them "+
		"are alike. Rank 2 differs most.") || lines[1] != "next: memtrace report /gone/rank2.bin" {
		t.Errorf("%q", lines)
	}
}
