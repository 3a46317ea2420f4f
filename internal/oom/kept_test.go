package oom

import (
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// A refusal whose blocks an attempt before had made was told to make the batch smaller, which it had done.
func TestLeftByAttempts(t *testing.T) {
	s := trainingOOM()
	c := s.OOM.Events[0].Composition
	for _, left := range []uint64{0, gib, 6 * gib} {
		c.LeftBytes, c.LeftIterationBytes = left, left
		text := advise(s, Followed{})
		if says := strings.HasPrefix(text, "6.00 GiB of the 8.50 GiB in blocks had been made by attempts that failed "+
			"before"); says != (left == 6*gib) || says == strings.Contains(text, "Half the batch") {
			t.Errorf("%d bytes left: %s", left, text)
		}
	}
}

// A program that keeps what it has computed, and no graph of it, was told that a smaller batch and gradient
// checkpointing shrink what a step holds.
func TestKeptWithoutGraphs(t *testing.T) {
	kept := report.Kept{Holder: trace.Holder{Path: "in main (store.py:35), variable keepers[*]", Tensors: 30,
		Bytes: 5 * gib, Types: "list, Tensor"}, FreesBytes: 5 * gib}
	graph, model := kept, kept
	graph.GraphNodes, graph.FreesBytes = 9, gib
	model.Path, model.Types = "in main (store.py:35), variable net.*.weight", "Net, Parameter"
	const training, step = "in training, so does gradient checkpointing", "A smaller batch"
	for _, c := range []struct {
		name     string
		k        report.KeptBy
		has, not []string
	}{
		{"a list", report.KeptBy{Holders: []report.Kept{kept}}, []string{"Most of it, 5.00 GiB in 30 tensors, " +
			"is kept in main (store.py:35), variable keepers[*]: keep less of it, or keep it on the host. To see it"},
			[]string{training, step}},
		{"a model", report.KeptBy{Holders: []report.Kept{model}}, []string{step}, []string{training}},
		{"a graph", report.KeptBy{Holders: []report.Kept{kept, graph}}, []string{step, training}, nil},
		{"cut short", report.KeptBy{Late: true, Holders: []report.Kept{kept}}, []string{step, training}, nil},
	} {
		e := plainOOM()
		e.AllocatedBytes = 8 * gib
		e.Advice = []report.Advice{{Rule: "untagged", Text: fillIn(ruleText(t, "untagged"), nil)}}
		Differentiated(e, &c.k)
		for _, text := range c.has {
			if !strings.Contains(e.Advice[0].Text, text) {
				t.Errorf("%s: not said: %s\n%s", c.name, text, e.Advice[0].Text)
			}
		}
		for _, text := range c.not {
			if strings.Contains(e.Advice[0].Text, text) {
				t.Errorf("%s: said: %s\n%s", c.name, text, e.Advice[0].Text)
			}
		}
	}
}

// States that a server keeps for each user were told as activations of this iteration, of which half the batch gives
// back half. Keys and values of one batch, a few for each layer, are.
func TestOutlived(t *testing.T) {
	const half = "Half the batch gives back"
	model := report.Kept{Holder: trace.Holder{Path: "__main__.net.*.weight", Types: "Net, Parameter", Tensors: 50}}
	states := report.Kept{Holder: trace.Holder{Path: "in serve (serve.py:13), variable sessions[*][*]", Tensors: 5592},
		FreesBytes: 4 * gib}
	layers, few, own := states, states, states
	layers.Tensors = 100
	few.FreesBytes = gib / 2
	own.Path = "in forward (net.py:13), variable features[*]"
	for name, c := range map[string]struct {
		holder report.Kept
		is     bool
	}{"states": {states, true}, "layers": {layers, false}, "few": {few, false}, "own": {own, false}} {
		s := trainingOOM()
		s.KeptBy = &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{model, c.holder}}
		text := advise(s, Followed{})
		says := strings.Contains(text, "4.00 GiB in 5592 tensors are kept in serve (serve.py:13), variable sessions[*][*]. "+
			"Where that outlives an iteration, ")
		if says != c.is || strings.Contains(text, half) == c.is {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// Of parameters that only an optimizer had, since the model was replaced, the state was said to be too large.
func TestOrphans(t *testing.T) {
	h := report.Kept{Holder: trace.Holder{Path: "__main__.optimizer" + report.Orphans, Types: "module, Adam, Parameter",
		Tensors: 120}, FreesBytes: 5 * gib}
	for _, late := range []bool{false, true} {
		e := plainOOM()
		e.AllocatedBytes = 8 * gib
		e.Advice = []report.Advice{{Rule: "optimizer-state"}, {Rule: "null-gpu"}}
		Differentiated(e, &report.KeptBy{Occasion: report.KeptAtOOM, Late: late, Holders: []report.Kept{h}})
		rules := []string{e.Advice[0].Rule, e.Advice[1].Rule}
		if want := []string{"orphans", "null-gpu"}; slices.Equal(rules, want) == late ||
			!late && !strings.Contains(e.Advice[0].Text, "and their state (__main__.optimizer). ") {
			t.Errorf("cut short %v: %+v", late, e.Advice)
		}
	}
	if h.IsModel() {
		t.Error("that is no model")
	}
}

// A result that its line makes anew, while the variable still has the one before, was told to be too large a step.
func TestReplaced(t *testing.T) {
	const before = "in main (shuffle.py:11), variable shuffled"
	for _, c := range []struct {
		path, site string
		most, is   bool
	}{{before, "shuffle.py:11 main", false, true}, {before, "data/shuffle.py:11 main", false, true},
		{before, "shuffle.py:12 main", false, false}, {before, "shuffle.py:11 other", false, false},
		{before, "shuffle.py:11 main", true, false}, {before + "[*]", "shuffle.py:11 main", false, false}} {
		e := plainOOM()
		e.Site, e.RequestedBytes, e.AllocatedBytes = c.site, gib, 3*gib
		e.Ledgers = append(e.Ledgers, report.Ledger{By: "site",
			Rows: []report.LedgerRow{{Owner: report.OwnerBlocks, Key: c.site, Bytes: gib}}})
		e.Advice = []report.Advice{{Rule: "untagged"}}
		h := report.Kept{FreesBytes: gib, FreesAtMost: c.most,
			Holder: trace.Holder{Path: c.path, Types: "Tensor", Tensors: 1, Bytes: gib}}
		Differentiated(e, &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{h}})
		if (e.Advice[0].Rule == "replaced") != c.is {
			t.Errorf("%+v: %+v", c, e.Advice)
		}
	}
}

func ruleText(t *testing.T, name string) string {
	t.Helper()
	for _, r := range adviceRules {
		if r.name == name {
			return r.text
		}
	}
	t.Fatalf("no rule %s", name)
	return ""
}
