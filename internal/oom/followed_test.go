package oom

import (
	"slices"
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/trace"
)

// trainingOOM ran out of memory with 6 GiB of feature maps, 2 of parameters and 1 of optimizer state.
func trainingOOM() *report.Summary {
	e := plainOOM()
	e.TimeNS = 5
	s := &report.Summary{Versions: map[string]string{"torch": "2.7.1"}}
	s.OOM = report.OOM{Count: 1, Events: []report.OOMEvent{*e}}
	s.Training = &report.Training{Categories: []string{"Feature maps", "Parameters", "Optimizer state", "Others"}}
	hold(s, 6*gib, 2*gib, gib/2)
	return s
}

// hold says what memory was for when it ran out.
func hold(s *report.Summary, features, parameters, states uint64) {
	e := &s.OOM.Events[0]
	e.Categories = []report.OOMCategory{{Category: "Feature maps", Bytes: features},
		{Category: "Parameters", Bytes: parameters}, {Category: "Optimizer state", Bytes: states}}
	e.Composition = &report.OOMComposition{FixedBytes: parameters + states, IterationBytes: features,
		IterationFeatureBytes: features, IterationBatchBytes: features}
}

// advise says what to try, as the recorder and a report do.
func advise(s *report.Summary, f Followed) string {
	e := &s.OOM.Events[0]
	e.Advice = Advise(e, AdviceFacts{Info: torchInfo(), Followed: f})
	CompleteAdvice(s)
	return adviceTexts(s)
}

func adviceTexts(s *report.Summary) string {
	var texts []string
	for _, a := range s.OOM.Events[0].Advice {
		texts = append(texts, a.Text)
	}
	return strings.Join(texts, "\n")
}

// What half the batch gives back of a forward pass that was not over is not all that it would save.
func TestHalfTheBatch(t *testing.T) {
	s := trainingOOM()
	const soFar = "Half the batch gives back about 3.00 GiB of what the iteration had so far."
	if text := advise(s, Followed{}); !strings.Contains(text, soFar) {
		t.Errorf("in the forward pass: %q", text)
	}
	e := &s.OOM.Events[0]
	e.Categories = append(e.Categories, report.OOMCategory{Category: ofActivations, Bytes: gib})
	if text := advise(s, Followed{}); !strings.Contains(text, "Half the batch gives back about 3.00 GiB. ") {
		t.Errorf("in the backward pass: %q", text)
	}
}

// Per-sample gradients (torch.func.vmap) are gradients on the way and no activations: half the batch was said to give
// back 512 bytes, and checkpointing most of what it does not touch.
func TestIntermediateGradientsAreNoActivations(t *testing.T) {
	s := trainingOOM()
	e := &s.OOM.Events[0]
	e.Composition.IterationFeatureBytes, e.Composition.IterationBatchBytes = 512, 1024
	e.Categories = append(e.Categories, report.OOMCategory{Category: ofActivations, Bytes: 6 * gib})
	text := advise(s, Followed{})
	if !strings.Contains(text, "intermediate gradients) hold 6.00 GiB") || !strings.Contains(text, "chunk_size") ||
		strings.Contains(text, "Half the batch") || strings.Contains(text, "heckpointing") {
		t.Errorf("%q", text)
	}
}

// A run that checkpoints, or computes under autocast, is not told to; one that does neither is told of both.
func TestFollowedAdviceIsNotGiven(t *testing.T) {
	const checkpoint, autocast = "torch.utils.checkpoint", "torch.autocast"
	for _, c := range []struct {
		name   string
		files  []string
		advice []string
	}{
		{"neither", []string{"/x/train.py"}, []string{checkpoint, autocast}},
		{"checkpointing", []string{"/x/site-packages/torch/utils/checkpoint.py"}, []string{autocast}},
		{"autocast", []string{"/x/site-packages/torch/amp/autocast_mode.py"}, []string{checkpoint}},
		{"both", []string{"/x/torch/utils/checkpoint.py", "/x/torch/amp/autocast_mode.py"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			tables := &trace.Tables{}
			for i, file := range c.files {
				tables.AddCode(trace.Code{ID: trace.CodeID(i + 1), Name: "run", File: file})
			}
			s := trainingOOM()
			text := advise(s, FollowedBy(tables))
			if !strings.HasPrefix(text, "Activations (feature maps) of this iteration hold 6.00 GiB, "+
				"63% of what is in use. Half the batch gives back about 3.00 GiB of what the iteration had so far.") {
				t.Errorf("the advice is %q", text)
			}
			for _, word := range []string{checkpoint, autocast} {
				if strings.Contains(text, word) != slices.Contains(c.advice, word) {
					t.Errorf("%s: %q", word, text)
				}
			}
		})
	}
}

// What holds little is not spoken of.
func TestSmallCategoriesGetNoAdvice(t *testing.T) {
	s := trainingOOM()
	hold(s, gib, gib, gib/2)
	if text := advise(s, Followed{}); text != "" {
		t.Errorf("the advice is %q", text)
	}
}
