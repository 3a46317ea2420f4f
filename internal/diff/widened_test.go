package diff

import (
	"fmt"
	"testing"

	"memtrace/analyzer/report"
)

// A wider Linear made the dropout after it grow most, and the dropout was named as the cause. What grew in the ratio of
// a wider module's parameters follows it, unless everything grew, as with a larger batch.
func TestDropoutFollowsTheWiderLayer(t *testing.T) {
	t.Parallel()
	const input, linear, dropout, other = "net.0.norm", "net.0.up", "net.0.drop", "net.0.pool"
	side := func(width uint64, held map[string]uint64) *report.Summary {
		g := report.Group{By: "module", Level: report.LevelFramework}
		s := &report.Summary{Training: &report.Training{Parameters: []report.Parameter{
			{Name: input + ".weight", Category: "parameter", Bytes: 64},
			{Name: linear + ".weight", Category: "parameter", Bytes: 64 * width}}}}
		for _, key := range []string{input, linear, dropout, other} {
			g.Rows = append(g.Rows, report.Row{Key: key, PeakBytes: held[key], AllocCount: 1})
			s.Framework.PeakBytes += held[key]
		}
		s.Framework.AllocCount, s.Groups = 4, []report.Group{g}
		return s
	}
	base := side(100, map[string]uint64{input: 50, linear: 400, dropout: 1000, other: 300})
	for _, c := range []struct {
		name    string
		changed *report.Summary
		since   string // of the dropout; the others have none
		cause   string
	}{
		{"wider", side(200, map[string]uint64{input: 50, linear: 800, dropout: 2000, other: 350}),
			linear, "net.0.up "},
		{"wider, of little itself", side(200, map[string]uint64{input: 50, linear: 410, dropout: 2000, other: 300}),
			linear, "net.0.drop net.0.up"},
		{"a larger batch, too", side(200, map[string]uint64{input: 100, linear: 800, dropout: 2000, other: 600}),
			"", "net.0.drop "},
		{"a larger batch alone", side(100, map[string]uint64{input: 100, linear: 700, dropout: 2000, other: 600}),
			"", "net.0.drop "},
		{"narrower", side(50, map[string]uint64{input: 50, linear: 200, dropout: 500, other: 300}),
			"", "net.0.drop "},
	} {
		d := New(base, c.changed)
		d.Explain("module")
		since := map[string]string{}
		for _, row := range d.Groups[0].Rows {
			since[row.Key] = row.Since
		}
		if since[dropout] != c.since || since[linear] != "" || since[other] != "" || since[input] != "" {
			t.Errorf("%s: since %v, want %q for %s alone", c.name, since, c.since, dropout)
		}
		var cause string
		for _, v := range d.Verdict.Causes {
			if v.By == "module" {
				cause = fmt.Sprintf("%s %s", v.Name, v.Since)
			}
		}
		if cause != c.cause {
			t.Errorf("%s: the cause is %q, want %q", c.name, cause, c.cause)
		}
	}
}
