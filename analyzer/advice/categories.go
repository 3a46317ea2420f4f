package advice

import (
	"slices"

	"memtrace/analyzer/report"
)

// categoryAdvice is what to try where most memory is of one category of training. frees is about which part of it
// following the advice gives back.
type categoryAdvice struct {
	category, rule string
	least          float64 // of what is in use; less is not worth the words
	frees          float64
	text           string
}

var categoryAdvices = []categoryAdvice{
	{"Feature maps", "activations", 0.2, 0.5,
		""}, // Followed.activationWords
	{"Optimizer state", "optimizer-state", 0.15, 0.75,
		"Optimizer state holds {held}, {share} of what is in use. An optimizer with 8-bit state gives back about {frees}; sharding it over several GPUs (FSDP, ZeRO) or keeping it on the " +
			"host gives back more."},
	{"Parameters", "parameters", 0.4, 0.5,
		"Parameters hold {held}, {share} of what is in use. Half precision gives back about {frees}; so do sharding over two GPUs (FSDP) and, for fine-tuning, a quantized base model with LoRA."},
}

// urgentAdvice says what stands in the way whatever the memory is for. It comes first.
var urgentAdvice = []string{"larger-than-device", "own-limit", "pinned", "fragmentation", "idle-cache",
	"other-processes", "growing"}

// vagueAdvice is what can be said where categories are not known.
var vagueAdvice = []string{"untagged", "tagged", "fresh"}

// ByCategory makes the advice for out-of-memory events of a training run in PyTorch say what the memory was for.
func ByCategory(s *report.Summary, followed Followed) {
	if s.Training == nil || s.Versions["torch"] == "" {
		return
	}
	for i := range s.OOM.Events {
		e := &s.OOM.Events[i]
		held := s.Training.HeldAtOOM(e)
		if held == nil || e.UsedBytes == 0 {
			continue
		}
		found := append(loadedTwice(e), longerInput(s.Training, e, held)...)
		for _, a := range categoryAdvices {
			n := slices.Index(s.Training.Categories, a.category)
			if n < 0 || float64(held.Held[n]) < a.least*float64(e.UsedBytes) {
				continue
			}
			if a.text == "" {
				seen := followed
				seen.Autocast = seen.Autocast || e.Seen.Autocast
				a.text = seen.activationWords()
			}
			bytes := held.Held[n]
			frees := uint64(a.frees * float64(bytes))
			found = append(found, report.Advice{Rule: a.rule, FreesBytes: frees,
				Text: fillIn(a.text, map[string]string{"held": report.SizeText(bytes), "share": percentOfUsed(e, bytes),
					"frees": report.SizeText(frees)})})
		}
		if len(found) == 0 {
			continue
		}
		rules := []string{}
		for _, a := range found {
			rules = append(rules, a.Rule)
		}
		e.Advice = slices.DeleteFunc(e.Advice, func(a report.Advice) bool {
			return slices.Contains(vagueAdvice, a.Rule) || slices.Contains(rules, a.Rule)
		})
		at := 0
		for at < len(e.Advice) && slices.Contains(urgentAdvice, e.Advice[at].Rule) {
			at++
		}
		e.Advice = slices.Insert(e.Advice, at, found...)
	}
}
