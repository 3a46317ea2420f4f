package oom

import (
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
