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
		{unknown, grows, " In the new run, " + grown + " Whether the base grows as well is not known."},
		{grows, none, " In the base, " + grown + " The new run does not grow."},
		{grows, grows, " In both runs memory grows; in the new one, " + grown},
	} {
		text := DiffVerdict(diff.New(run(c.base), run(c.changed)))
		if _, says, _ := strings.Cut(text, "unchanged, 100.0 MiB."); says != c.says {
			t.Errorf("%q, want %q", text, c.says)
		}
	}
}

// What a cause names several of ran into their names: "2 larger parameters a.weight and b.weight".
func TestCauseWords(t *testing.T) {
	cause := func(kind, state string, count int, names ...string) *diff.Cause {
		return &diff.Cause{By: "parameters", Kind: kind, State: state, Count: count, Delta: 1024, Name: names[0],
			Alike: names[1:], AlikeCount: len(names) - 1}
	}
	for want, c := range map[string]*diff.Cause{
		"larger parameter a.weight (+1.00 KiB)":         cause("parameter", diff.StateGrew, 1, "a.weight"),
		"2 larger parameters, a and b (+1.00 KiB each)": cause("parameter", diff.StateGrew, 1, "a", "b"),
		"6 new buffers, net.{0..5}.mask (+1.00 KiB)":    cause("buffer", diff.StateNew, 6, "net.{0..5}.mask"),
		"new optimizer state scratch (+1.00 KiB)":       cause("optimizer", diff.StateNew, 1, "scratch"),
		"new optimizer state, a and b (+1.00 KiB each)": cause("optimizer", diff.StateNew, 1, "a", "b"),
	} {
		if got := causeWords(c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
