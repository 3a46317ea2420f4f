//go:build e2e

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/render"
)

var fitting = regexp.MustCompile(`about ([\d.]+) times this batch would fit on device 0\.`)

// The batch that fits according to a report does, and one that is a tenth larger does not.
func TestBatchFits(t *testing.T) {
	t.Parallel()
	extended(t)
	for _, c := range []struct {
		model, device string
		batch         int
	}{{"wide", "1G", 8}, {"attention", "2G", 4}, {"convolutions", "2G", 16}} {
		t.Run(c.model, func(t *testing.T) {
			t.Parallel()
			run := func(batch int) render.DocumentVerdict {
				r := program{framework: torch27, args: []string{"fit.py", c.model, strconv.Itoa(batch)},
					env: []string{"NULLCUDA_MEM=" + c.device}, mayFail: true}.record(t)
				return jsonReport(t, r.trace).Verdict
			}
			factor := 0.0
			for _, text := range run(c.batch).Sentences {
				if m := fitting.FindStringSubmatch(text); m != nil {
					factor, _ = strconv.ParseFloat(m[1], 64)
				}
			}
			if factor <= 1 {
				t.Fatal("no sentence says what would fit")
			}
			batch := float64(c.batch) * factor
			if v := run(int(batch)); v.Outcome != report.OutcomePeak {
				t.Errorf("%.1f times a batch of %d: %q", factor, c.batch, v.Sentences)
			}
			if v := run(int(math.Ceil(1.1*batch)) + 1); v.Outcome != report.OutcomeOOM {
				t.Errorf("a tenth more than %.1f times a batch of %d fits: %q", factor, c.batch, v.Sentences)
			}
		})
	}
}

// Of ranks that train the same model, the one with another batch is explained by it.
func TestRankWithALargerBatch(t *testing.T) {
	t.Parallel()
	extended(t)
	folder := t.TempDir()
	for rank, batch := range []string{"8", "14", "8"} {
		r := program{framework: torch27, args: []string{"fit.py", "wide", batch},
			env: []string{"NULLCUDA_MEM=4G", "RANK=" + strconv.Itoa(rank), "WORLD_SIZE=3"}}.record(t)
		if err := os.Link(r.trace, filepath.Join(folder, strconv.Itoa(rank)+".bin")); err != nil {
			t.Fatal(err)
		}
	}
	const want = "The model is the same and every activation 1.75 times as large: a larger batch."
	if text := strings.Join(strings.Fields(memtrace(t, "report", folder)), " "); !strings.Contains(text, want) {
		t.Errorf("nothing says %q:\n%s", want, text)
	}
}
