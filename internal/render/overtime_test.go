package render

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// The line of memory over time said "+2.3 ms to +60.0 s of 100.0 s" where a program slept for the last 40 s, and ended
// after eight intervals where a loop reached the same height in each. It ends with the last change, and says for how
// long nothing changed after it.
func TestOverTimeEndsWithTheLastChange(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		changed int64
		want    string
		drawn   int
	}{
		{"still at the end", 59e9, "+0 ns to +60.000 s, then flat for 40.000 s, peak at +50.000 s", 60},
		{"steady to the end", 99e9, "+0 ns to +100.000 s, peak at +50.000 s", 100},
		{"still from the start", 0, "+0 ns to +8.000 s, then flat for 92.000 s, peak at +50.000 s", sparkColumnsMin},
	} {
		s := &report.Summary{Process: report.Process{DurationNS: 100e9},
			Driver: report.Level{AllocCount: 1, PeakBytes: 7, PeakTimeNS: 50e9},
			Heights: []report.Heights{{Level: "driver", WidthNS: 1e9, ChangedNS: c.changed,
				PeakBytes: slices.Repeat([]uint64{7}, 100)}}}
		var text bytes.Buffer
		p := &screen{Page: layout.NewPage(&text, layout.Options{Width: 100})}
		p.overTime(s)
		line := strings.TrimRight(text.String(), "\n")
		drawn := len(inMotion(&s.Heights[0]))
		if !strings.HasSuffix(line, "  "+c.want) || drawn != c.drawn {
			t.Errorf("%s: %q of %d intervals, want %q of %d", c.name, line, drawn, c.want, c.drawn)
		}
	}
}
