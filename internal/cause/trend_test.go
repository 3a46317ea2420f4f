package cause

import (
	"testing"

	"memtrace/analyzer/report"
)

// A device is full when its growth has taken what the peak had left; several devices, a full one, and a program that
// has run out of memory already have no such time.
func TestFullIn(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	device := func(total, peak uint64) report.Device {
		return report.Device{TotalBytes: total, Driver: report.Level{AllocCount: 1, PeakBytes: peak}}
	}
	unused := report.Device{TotalBytes: 80 * gib}
	for name, c := range map[string]struct {
		devices  []report.Device
		failures uint64
		rate     float64 // bytes a second
		want     float64
	}{
		"one":                    {[]report.Device{device(16*gib, 4*gib)}, 0, gib, 12},
		"one of two is used":     {[]report.Device{unused, device(16*gib, 4*gib)}, 0, gib / 2, 24},
		"two are used":           {[]report.Device{device(16*gib, 4*gib), device(16*gib, 4*gib)}, 0, gib, 0},
		"full":                   {[]report.Device{device(16*gib, 16*gib)}, 0, gib, 0},
		"of unknown size":        {[]report.Device{device(0, 4*gib)}, 0, gib, 0},
		"it does not grow":       {[]report.Device{device(16*gib, 4*gib)}, 0, 0, 0},
		"memory ran out already": {[]report.Device{device(16*gib, 4*gib)}, 1, gib, 0},
	} {
		s := &report.Summary{Devices: c.devices}
		s.OOM.Count = c.failures
		if got := fullIn(s, c.rate); got != c.want {
			t.Errorf("%s: %v s, want %v", name, got, c.want)
		}
	}
}
