package oom

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// What a smaller element gives back goes by the element that there is. A model in half precision was told that half
// precision gives back half of it.
func TestElementsInUse(t *testing.T) {
	const parameters, state = 6 * gib, 4 * gib
	for _, c := range []struct {
		name              string
		parameters, state report.ElementWidths
		says, not         string
	}{
		{"single precision", report.ElementWidths{WideBytes: parameters}, report.ElementWidths{WideBytes: state},
			"An optimizer with 8-bit state gives back about 3.00 GiB|Half precision gives back about 3.00 GiB", "already"},
		{"half precision", report.ElementWidths{TwoBytes: parameters}, report.ElementWidths{TwoBytes: state},
			"An optimizer with 8-bit state gives back about 2.00 GiB|Sharding over two GPUs (FSDP) gives back about 3.00 GiB",
			"Half precision"},
		{"bytes", report.ElementWidths{OneByte: parameters}, report.ElementWidths{OneByte: state},
			"Sharding it over two GPUs (FSDP, ZeRO) gives back about 2.00 GiB", "8-bit"},
		{"unknown", report.ElementWidths{UnknownBytes: parameters}, report.ElementWidths{UnknownBytes: state},
			"If it is in single precision, an optimizer with 8-bit state gives back about 3.00 GiB|unless they are in it", "already"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := trainingOOM()
			hold(s, gib, parameters, state)
			s.OOM.Events[0].Composition.Parameters, s.OOM.Events[0].Composition.OptimizerState = c.parameters, c.state
			texts := advise(s, Followed{})
			for _, says := range strings.Split(c.says, "|") {
				if !strings.Contains(texts, says) {
					t.Errorf("not said: %s\n%s", says, texts)
				}
			}
			if strings.Contains(texts, c.not) {
				t.Errorf("said: %s\n%s", c.not, texts)
			}
		})
	}
}

// Before the first step of an optimizer less is there than will be: half the batch, which gives back what the advice
// says, need not be enough.
func TestStateStillToCome(t *testing.T) {
	const (
		training = "In training, gradients and the optimizer's state"
		state    = "No optimizer had made a step yet"
		making   = "the first step was still making it"
	)
	for _, c := range []struct {
		name             string
		gradients, state uint64
		passes           uint64
		stepped, graphs  bool
		says             string
	}{
		{"before a backward pass", 0, 0, 1, false, true, training},
		{"no graph", 0, 0, 1, false, false, ""},
		{"several passes", 0, 0, 4, false, true, ""},
		{"after a backward pass", 6 * gib, 0, 1, false, true, state},
		{"in the first step", 6 * gib, 3 * gib, 1, false, true, making},
		{"in the first step, with all states", 2 * gib, 4*gib + 4096, 1, false, true, ""},
		{"in the first step, with momentum", 4 * gib, 4 * gib, 1, false, true, ""},
		{"after a step", 6 * gib, 0, 1, true, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := trainingOOM()
			hold(s, 6*gib, 4*gib, c.state)
			e := &s.OOM.Events[0]
			e.Categories = append(e.Categories, report.OOMCategory{Category: gradients, Bytes: c.gradients})
			e.Composition.Stepped, e.Composition.Passes = c.stepped, c.passes
			s.KeptBy = &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{{}}}
			if c.graphs {
				s.KeptBy.Holders[0].GraphNodes = 5
			}
			texts := advise(s, Followed{})
			for _, text := range []string{training, state, making} {
				if strings.Contains(texts, text) != (text == c.says) {
					t.Errorf("%q is said, or not, against the claim:\n%s", text, texts)
				}
			}
		})
	}
}

// Checkpointing gives back what a backward pass needs, so it is not named where nothing is differentiated.
func TestCheckpointingNeedsGraphs(t *testing.T) {
	without := report.Kept{Holder: trace.Holder{Path: "cache", Bytes: gib}}
	with := without
	with.GraphNodes = 5
	const plain, training, none = "Gradient checkpointing", "In training, gradient checkpointing", ""
	for _, c := range []struct {
		name    string
		kept    *report.KeptBy
		stepped bool
		want    string
	}{
		{"no graph", &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{without}}, false, none},
		{"no graph after a step", &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{without}}, true,
			none},
		{"a graph", &report.KeptBy{Occasion: report.KeptAtOOM, Holders: []report.Kept{without, with}}, false, plain},
		{"cut short", &report.KeptBy{Occasion: report.KeptAtOOM, Late: true, Holders: []report.Kept{without}}, false,
			training},
		{"skipped", &report.KeptBy{Skipped: "switched off"}, false, training},
		{"not looked for", nil, false, training},
		{"not looked for after a step", nil, true, plain},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := trainingOOM()
			s.KeptBy, s.OOM.Events[0].Composition.Stepped = c.kept, c.stepped
			texts := advise(s, Followed{})
			if got := strings.Contains(texts, plain); got != (c.want == plain) {
				t.Errorf("plainly: %v\n%s", got, texts)
			}
			if got := strings.Contains(texts, training); got != (c.want == training) {
				t.Errorf("for training: %v\n%s", got, texts)
			}
		})
	}
}

// Gradient checkpointing was advised where most activations were the logits of a loss, outside of all layers: with it
// the program ran out of memory at the same place. A program without modules has layers of its own.
func TestCheckpointingLeavesTheLoss(t *testing.T) {
	for _, c := range []struct {
		loose uint64
		says  bool
	}{{0, false}, {2 * gib, false}, {4 * gib, true}, {6 * gib, false}} {
		s := trainingOOM()
		s.OOM.Events[0].Composition.LooseFeatureBytes = c.loose
		text := advise(s, Followed{})
		if strings.Contains(text, "4.00 GiB of them were made outside of all modules, as by a loss") != c.says ||
			strings.Contains(text, "(torch.utils.checkpoint)") == c.says {
			t.Errorf("%d made outside: %s", c.loose, text)
		}
	}
}
