package render

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
)

// A run that grows where the other one does not differs in more than its peak.
func TestDiffTellsGrowth(t *testing.T) {
	const mib = 1 << 20
	grows := report.Trend{Kind: report.GrowthSteady, Level: report.LevelFramework, Bytes: 80 * mib,
		BytesPerSecond: 4 * mib, Owners: []report.TrendOwner{{Site: "train.py:10 step", Bytes: 80 * mib}}}
	none := report.Trend{Kind: report.GrowthNone, Level: report.LevelFramework}
	unknown := report.Trend{Kind: report.GrowthUnknown, Level: report.LevelFramework}
	run := func(trend report.Trend) *report.Summary {
		return &report.Summary{Trend: &trend, Framework: report.Level{PeakBytes: 100 * mib, AllocCount: 1}}
	}
	const grown = "memory grows by 4.00 MiB/s (80.0 MiB since +0 ns). It was allocated at train.py:10 step."
	for _, c := range []struct {
		base, changed report.Trend
		says          string
	}{
		{none, none, ""},
		{unknown, none, ""},
		{none, grows, " In the new run, " + grown + " The base does not grow."},
		{unknown, grows, " In the new run, " + grown + " The base has too little to judge growth by."},
		{grows, none, " In the base, " + grown + " The new run does not grow."},
		{grows, grows, " In both runs memory grows; in the new one, " + grown},
	} {
		text := DiffVerdict(diff.New(run(c.base), run(c.changed)))
		if _, says, _ := strings.Cut(text, "unchanged, 100.0 MiB."); says != c.says {
			t.Errorf("%q, want %q", text, c.says)
		}
	}
}
