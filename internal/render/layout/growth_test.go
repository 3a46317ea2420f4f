package layout

import (
	"testing"

	"memtrace/analyzer/report"
)

func TestGrowth(t *testing.T) {
	t.Parallel()
	owner := func(site string, bytes uint64) report.TrendOwner { return report.TrendOwner{Site: site, Bytes: bytes} }
	const mib = 1 << 20
	for want, trend := range map[string]report.Trend{
		"Memory grows by 2.44 MiB/s (115.5 MiB since +6.011 s). X holds 76% of the growth, Y 24%.": {
			Level: "framework", Bytes: 1155 * mib / 10, BytesPerSecond: 2.44 * mib, FromTimeNS: 6_011_000_000,
			Owners: []report.TrendOwner{owner("X", 878*mib/10), owner("Y", 277*mib/10)}},
		"Memory grows by 6.00 MiB/min, 2.00 MiB per iteration (10.0 MiB since +0 ns). It was allocated at X." +
			" At this rate the device will be full in about 9 hours.": {
			Level: "framework", Bytes: 10 * mib, BytesPerSecond: mib / 10., BytesPerIteration: 2 * mib,
			ToTimeNS: 100e9, FullInSeconds: 9 * 3600, Owners: []report.TrendOwner{owner("X", 10*mib)}},
		"Memory grows by 2.00 MiB per iteration (10.0 MiB since +0 ns). X holds 60% of the growth, Y 40%.": {
			Level: "framework", Bytes: 10 * mib, BytesPerSecond: 100 * mib, BytesPerIteration: 2 * mib, ToTimeNS: 1e8,
			Owners: []report.TrendOwner{owner("X", 6*mib), owner("Y", 4*mib), owner("Z", 1<<10)}},
		"Memory grows by 2.00 MiB per iteration (12.0 MiB since +0 ns). It was allocated at X.": { // on the null GPU
			Level: "framework", Bytes: 12 * mib, BytesPerIteration: 2 * mib, ToTimeNS: 100e9,
			Owners: []report.TrendOwner{owner("X", 12*mib)}},
		"Memory grows (12.0 MiB since +0 ns). It was allocated at X, called from Y.": {
			Level: "framework", Bytes: 12 * mib,
			Owners: []report.TrendOwner{{Site: "Y", Bytes: 12 * mib, Inner: "X"}}},
		"Memory grows (12.0 MiB since +0 ns). It was allocated at X.": {
			Level: "framework", Bytes: 12 * mib, ToTimeNS: 100e9, Owners: []report.TrendOwner{owner("X", 12*mib)}},
		"Managed memory grows by 1.00 MiB/s (10.0 MiB since +0 ns). X holds 40% of the growth, Y 10%," +
			" 2 more places 10%, places that do not grow steadily 40%.": {
			Level: "managed", Bytes: 10 * mib, BytesPerSecond: mib,
			Owners: []report.TrendOwner{owner("X", 4*mib), owner("Y", mib), owner("Z", mib/2), owner("W", mib/2)}},
		"Device memory outside the framework's allocator grows by 1.00 MiB/s (10.0 MiB since +0 ns). It was allocated" +
			" at X.": {Level: "driver", Bytes: 10 * mib, BytesPerSecond: mib,
			Owners: []report.TrendOwner{owner("X", 10*mib)}},
	} {
		if got := Growth(&trend, "framework"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestFullWords(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{0: "", 0.006: "1 second", 1: "1 second", 26: "26 seconds",
		41.2: "41 seconds", 119: "119 seconds", 120: "2 minutes", 7199: "120 minutes", 7200: "2 hours",
		9 * 3600: "9 hours", 3 * 24 * 3600: "3 days", 31 * 24 * 3600: ""} {
		if got := fullWords(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}
