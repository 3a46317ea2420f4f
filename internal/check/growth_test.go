package check

import (
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
