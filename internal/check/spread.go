package check

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
)

// rankSpread compares the peaks of the ranks of one run. Of a part of them, or of several runs, it says nothing.
func rankSpread(g Gate, traces []*Trace) Result {
	r := Result{Kind: g.Kind, Gate: g.Text, Status: Passed, Unit: Percent, Limit: &Figure{g.Limit}}
	if len(traces) < 2 {
		r.Status, r.Text = Broken, "needs the traces of several ranks, such as their folder"
		return r
	}
	if why := notOneRun(traces); why != "" {
		r.Status, r.Text = Broken, why
		return r
	}
	for _, t := range traces {
		if err := hasLevel(t.Summary, t.Findings); err != nil {
			r.Status, r.Text, r.Trace = Broken, err.Error(), t.Path
			return r
		}
	}
	peak := func(t *Trace) uint64 { return t.Summary.Main().PeakBytes }
	compare := func(a, b *Trace) int {
		switch {
		case peak(a) < peak(b):
			return -1
		case peak(a) > peak(b):
			return 1
		}
		return 0
	}
	low, high := slices.MinFunc(traces, compare), slices.MaxFunc(traces, compare)
	if peak(low) == 0 {
		r.Status, r.Text, r.Trace = Broken, "a process without memory has no peak to compare", low.Path
		return r
	}
	spread := 100 * float64(peak(high)-peak(low)) / float64(peak(low))
	r.Value = &Figure{Amount{spread, Percent}}
	if spread > g.Limit.Value {
		r.Status = Failed
		high.explainDifference(&r, low.Summary)
		r.Text = fmt.Sprintf("%s has most, %s least. Compared with that: %s", high.Path, low.Path, r.Text)
	}
	return r
}

// notOneRun says why traces are not those of all ranks of one run, once each; "" if they are.
func notOneRun(traces []*Trace) string {
	list := make([]diff.RankProcess, len(traces))
	for i, t := range traces {
		list[i] = diff.RankProcess{Path: t.Path, Head: &report.Head{Summary: t.Summary}}
	}
	switch f := diff.FaultsOf(list); {
	case len(f.Unranked) > 0:
		return fmt.Sprintf("needs the traces of the ranks of one run, and %s has no rank", f.Unranked[0].Path)
	case len(f.Others) > 0:
		return fmt.Sprintf("needs the traces of one run, and %s (rank %d) is of another one; leave it out",
			f.Others[0].Path, *f.Others[0].Head.Summary.Process.Rank)
	case len(f.Twice) > 0:
		return fmt.Sprintf("needs one trace of each rank, and %s %s there more than once: %s",
			layout.RankWords(f.Twice), layout.IsAre(len(f.Twice)), pathsOf(traces, f.Twice[0]))
	case len(f.Missing) > 0:
		return fmt.Sprintf("needs the traces of all ranks, and %s %s missing", layout.RankWords(f.Missing),
			layout.IsAre(len(f.Missing)))
	}
	return ""
}

// pathsOf lists the traces of a rank.
func pathsOf(traces []*Trace, rank int) string {
	var paths []string
	for _, t := range traces {
		if sameRank(t.Summary.Process.Rank, &rank) {
			paths = append(paths, t.Path)
		}
	}
	return strings.Join(paths[:min(len(paths), namesShown)], ", ")
}
