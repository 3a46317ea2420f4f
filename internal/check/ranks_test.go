package check

import (
	"fmt"
	"strings"
	"testing"
)

// ranksOf are the traces of some stories, a.bin, b.bin and so on.
func ranksOf(t testing.TB, stories ...story) (list []*Trace) {
	t.Helper()
	for i, s := range stories {
		s.kv, s.path = 100, string(rune('a'+i))+".bin"
		list = append(list, s.trace(t))
	}
	return list
}

// TestRankSpreadIsOfOneRun: the spread of ranks of which one is missing, that are of two runs, or of which one is there
// twice, is no figure of a run, however small it is: it is refused, and the ranks are named.
func TestRankSpreadIsOfOneRun(t *testing.T) {
	for what, test := range map[string]struct {
		stories []story
		says    string // "": it passes
	}{
		"all ranks":       {[]story{{rank: 0, world: 3}, {rank: 1, world: 3}, {rank: 2, world: 3}}, ""},
		"no number":       {[]story{{rank: 1}, {rank: 0}}, ""},
		"the last":        {[]story{{rank: 0, world: 4}, {rank: 1, world: 4}}, "ranks 2-3 are missing"},
		"one of many":     {[]story{{rank: 0, world: 3}, {rank: 2, world: 3}}, "rank 1 is missing"},
		"a hole":          {[]story{{rank: 0}, {rank: 2}}, "rank 1 is missing"},
		"a world of 2^31": {[]story{{rank: 0, world: 1<<31 - 1}, {rank: 1, world: 1<<31 - 1}}, "are missing"},
		"two jobs": {[]story{{rank: 0, job: "7"}, {rank: 1, job: "7"}, {rank: 1, job: "8"}},
			"c.bin (rank 1) is of another one; leave it out"},
		"two worlds": {[]story{{rank: 0, world: 2}, {rank: 1, world: 2}, {rank: 2, world: 3}},
			"c.bin (rank 2) is of another one"},
		"yesterday": {[]story{{rank: 0, world: 2, started: 1000}, {rank: 1, world: 2, started: 1000},
			{rank: 1, world: 2, started: 500}}, "c.bin (rank 1) is of another one"},
		"twice": {[]story{{rank: 0, world: 2}, {rank: 1, world: 2}, {rank: 1, world: 2}},
			"rank 1 is there more than once: b.bin, c.bin"},
		"both twice": {[]story{{rank: 0}, {rank: 0}, {rank: 1}, {rank: 1}},
			"ranks 0-1 are there more than once: a.bin, b.bin"},
		"no rank": {[]story{{rank: 0}, {rank: -1}}, "b.bin has no rank"},
	} {
		r := checked(t, "max rank-spread=50%", ranksOf(t, test.stories...)...)
		switch {
		case test.says == "" && r.Status != Passed:
			t.Errorf("%s: %s, %q; want it to pass", what, r.Status, r.Text)
		case test.says != "" && (r.Status != Broken || !strings.Contains(r.Text, test.says)):
			t.Errorf("%s: %s, %q; want %q", what, r.Status, r.Text, test.says)
		}
	}
}

// TestBaselineOfAnotherRank: ranks of a pipeline hold different parts of a model, so a baseline of one of them says
// nothing of another: the comparison is refused, unless it is asked for.
func TestBaselineOfAnotherRank(t *testing.T) {
	for _, test := range []struct {
		base []int // ranks in the baseline; -1: a process without one
		rank int
		says string
	}{
		{[]int{0}, 0, ""},
		{[]int{-1}, -1, ""},
		{[]int{0}, 3, "base.json is of rank 0, this is rank 3; --any-rank compares them"},
		{[]int{0}, -1, "base.json is of rank 0, this is a process without a rank"},
		{[]int{-1}, 0, "base.json is of a process without a rank, this is rank 0"},
		{[]int{0, 1}, 1, ""},
		{[]int{0, 1}, 3, "base.json does not have rank 3"},
		{[]int{0, 1}, -1, "base.json does not have a process without a rank"},
	} {
		var ranks []story
		for _, rank := range test.base {
			ranks = append(ranks, story{rank: rank})
		}
		b, err := NewBaseline("base.json", ranksOf(t, ranks...), nil)
		if err != nil {
			t.Fatal(err)
		}
		peak, err := gate(t, "compare peak")
		if err != nil {
			t.Fatal(err)
		}
		plan := Plan{Gates: []Gate{peak}, Baseline: b}
		this := ranksOf(t, story{rank: test.rank})
		r := plan.Check(this).Results[0]
		if want := map[bool]string{true: Passed, false: Broken}[test.says == ""]; r.Status != want ||
			!strings.Contains(r.Text, test.says) {
			t.Errorf("%v and %d: %s, %q; want %q", test.base, test.rank, r.Status, r.Text, test.says)
		}
		plan.AnyRank = true
		r = plan.Check(this).Results[0]
		if passes := test.says == "" || len(test.base) == 1; passes != (r.Status == Passed) {
			t.Errorf("%v and %d, asked for: %s, %q", test.base, test.rank, r.Status, r.Text)
		}
	}
}

// TestJoinBaselines: a folder's files are one baseline, in which each rank is once and all are of one program.
func TestJoinBaselines(t *testing.T) {
	part := func(path string, s story) *Baseline {
		s.kv = 100
		b, err := NewBaseline(path, []*Trace{s.trace(t)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for what, test := range map[string]struct {
		list []*Baseline
		says string
	}{
		"ranks": {[]*Baseline{part("0.json", story{rank: 0}), part("1.json", story{rank: 1})}, ""},
		"twice": {[]*Baseline{part("0.json", story{rank: 1}), part("1.json", story{rank: 1})},
			"main: a baseline is of one run; 0.json and 1.json are both of rank 1"},
		"no rank": {[]*Baseline{part("0.json", story{rank: -1}), part("1.json", story{rank: -1})},
			"of 0.json and 1.json, neither has a rank"},
		"programs": {[]*Baseline{part("0.json", story{rank: 0}), part("1.json", story{rank: 1, program: "serve.py"})},
			"not of train.py (0.json) and serve.py (1.json)"},
	} {
		b, err := JoinBaselines("main", test.list)
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s: %v, want %q", what, err, test.says)
			}
			continue
		}
		if err != nil || fmt.Sprint(len(b.Runs)) != "2" {
			t.Errorf("%s: %v, %+v", what, err, b)
		}
	}
}
