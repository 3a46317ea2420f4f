//go:build e2e

package e2e

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	kindNames = []string{"diffusion", "reinforcement", "graph", "serving", "captured", "preference", "truncated",
		"notebook", "lengths", "contrast", "parallel"}
	tableRow = regexp.MustCompile(`^  (.+?) +([0-9.]+ [KMGT]?i?B) +[0-9.]+%`)
	moreRows = regexp.MustCompile(`^[0-9]+ more `)
)

// TestFirstScreens: the report of a program of whatever kind is a screen, has the peak that PyTorch counted, and the
// lines that it names hold four fifths of that.
func TestFirstScreens(t *testing.T) {
	t.Parallel()
	extended(t)
	for n, kind := range kindNames {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			rarely(t, n%3 != 0)
			r := program{framework: torch27, args: []string{"kinds.py", kind}}.record(t)
			peak, err := strconv.ParseUint(strings.TrimSpace(r.stdout), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "peak", jsonReport(t, r.trace).Framework.PeakBytes, peak)
			text := memtrace(t, "report", r.trace)
			if lines := strings.Count(text, "\n"); lines > 40 {
				t.Errorf("%d lines:\n%s", lines, text)
			}
			_, table, _ := strings.Cut(text, "Where it was allocated, by site")
			table, _, _ = strings.Cut(table, "\n\n")
			named := int64(0)
			for line := range strings.Lines(table) {
				if row := tableRow.FindStringSubmatch(line); row != nil && !moreRows.MatchString(row[1]) {
					named += bytesIn(t, row[2])
				}
			}
			if 5*named < 4*int64(peak) {
				t.Errorf("the lines that are named hold %d of %d bytes:\n%s", named, peak, text)
			}
		})
	}
}
