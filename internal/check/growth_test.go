package check

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
)

// A gate on growth passed a leak that was too small to be called growth, whatever its limit. A gate that such a rise
// cannot be compared with is not refused for it.
func TestLittleGrowthIsJudged(t *testing.T) {
	const kib = 1 << 10
	little := report.Trend{Kind: report.GrowthNone, Bytes: 12 * kib, FloorBytes: 1024 * kib}
	repeated := little
	repeated.BytesPerIteration = kib
	steady := report.Trend{Kind: report.GrowthSteady, Bytes: 9 << 20}
	for _, c := range []struct {
		trend   report.Trend
		nullGPU bool
		unit    string
		value   float64
		refused bool
	}{
		{trend: repeated, unit: BytesPerStep, value: kib},
		{trend: repeated, unit: Bytes, value: 12 * kib},
		{trend: little, unit: BytesPerStep},
		{trend: little, nullGPU: true, unit: BytesPerSec},
		{trend: steady, unit: BytesPerStep, refused: true},
		{trend: steady, nullGPU: true, unit: BytesPerSec, refused: true},
	} {
		got, err := growth(&report.Summary{NullGPU: c.nullGPU, Trend: &c.trend}, c.unit)
		if (err != nil) != c.refused || got.Value != c.value {
			t.Errorf("%+v in %s: %v, %v; want %v", c.trend, c.unit, got, err, c.value)
		}
	}
}

// Of two traces that both grow, a comparison said that the base is too short to tell: a baseline that is made of a
// trace lacked the judgement. A baseline's file does lack it.
func TestBaseGrows(t *testing.T) {
	t.Parallel()
	g, err := ParseCompare("peak", Amount{2, Percent})
	if err != nil {
		t.Fatal(err)
	}
	grows := func(steps int) *Trace { return story{kv: 100, rank: -1, grows: steps}.trace(t) }
	trace := must(NewBaseline("base.bin", []*Trace{grows(200)}, nil))
	file := must(ParseBaseline("base.json", must(trace.JSON())))
	for _, c := range []struct {
		base *Baseline
		says string
	}{
		{trace, "In both runs memory grows; in the new one, memory grows by "},
		{file, "Whether the base grows as well is not known."},
	} {
		o := (&Plan{Gates: []Gate{g}, Baseline: c.base}).Check([]*Trace{grows(300)})
		if text := o.Results[0].Text; !strings.Contains(text, c.says) {
			t.Errorf("%s: %q, want %q", c.base.path, text, c.says)
		}
	}
}

// On the null GPU a gate per step was told to count per second, and one per second to count per step: of a program
// without steps, the growth in total is all that is known.
func TestGrowthHintsAreOpen(t *testing.T) {
	t.Parallel()
	plain := report.Trend{Kind: report.GrowthSteady, Bytes: 8 << 20}
	stepped := plain
	stepped.BytesPerIteration = 1 << 20
	for _, c := range []struct {
		trend   report.Trend
		nullGPU bool
		unit    string
		says    string
	}{
		{plain, true, BytesPerStep, "limit it in total, or call memtrace.step() in the loop"},
		{plain, true, BytesPerSec, "limit it in total, or call memtrace.step() in the loop"},
		{stepped, true, BytesPerSec, "limit it per step, or in total"},
		{plain, false, BytesPerStep, "limit it per second or in total, or call memtrace.step() in the loop"},
	} {
		_, err := growth(&report.Summary{NullGPU: c.nullGPU, Trend: &c.trend}, c.unit)
		if err == nil || !strings.HasSuffix(err.Error(), c.says) {
			t.Errorf("%s, null GPU %v: %v, want %q", c.unit, c.nullGPU, err, c.says)
		}
	}
}
