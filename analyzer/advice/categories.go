package advice

import (
	"slices"

	"memtrace/analyzer/report"
)

// categoryAdvice is what to try where most memory is of one category of training. frees is about which part of it
// following the advice gives back: of activations that of the whole batch, with its inputs.
type categoryAdvice struct {
	category, rule string
	least          float64 // of what is in use; less is not worth the words
	frees          float64
	text           string
}

var categoryAdvices = []categoryAdvice{
	{"Feature maps", "activations", 0.2, 0.5,
		""}, // Followed.activationWords
	{"Autocast weight copies", "autocast-copies", 0.1, 1,
		"torch.autocast keeps {held} of copies of weights in half precision until its outermost block ends, {share} of what is in use. torch.autocast(..., cache_enabled=False) gives " +
			"back about {frees}; so does a model that is in half precision itself."},
	{"Optimizer state", "optimizer-state", 0.15, 0.75,
		"Optimizer state holds {held}, {share} of what is in use. An optimizer with 8-bit state gives back about {frees}; sharding it over several GPUs (FSDP, ZeRO) or keeping it on the " +
			"host gives back more."},
	{"Parameters", "parameters", 0.4, 0.5,
		"Parameters hold {held}, {share} of what is in use. Half precision gives back about {frees}; so do sharding over two GPUs (FSDP) and, for fine-tuning, a quantized base model with LoRA."},
}

// urgentAdvice says what stands in the way whatever the memory is for. It comes first.
var urgentAdvice = []string{"larger-than-device", "own-limit", "pinned", "kept", "failed-attempts", "private-pools",
	"fragmentation", "idle-cache", "other-processes", "growing"}

// vagueAdvice is what can be said where categories are not known.
var vagueAdvice = []string{"untagged", "tagged", "fresh"}

// byCategory is what to try by what PyTorch's memory was for. A smaller batch gives back activations of the running
// iteration alone.
func byCategory(e *report.OOMEvent, f Facts) (found []report.Advice) {
	if e.Composition == nil || !f.torch() || e.UsedBytes == 0 || e.Outcome != report.OOMFailed {
		return nil
	}
	for _, a := range categoryAdvices {
		bytes := uint64(0)
		if a.text == "" {
			bytes, a.text = e.Composition.IterationFeatureBytes, f.activationWords(e)
		} else if n := slices.IndexFunc(e.Categories, func(c report.OOMCategory) bool {
			return c.Category == a.category
		}); n >= 0 {
			bytes = e.Categories[n].Bytes
		}
		if bytes == 0 || float64(bytes) < a.least*float64(e.UsedBytes) {
			continue
		}
		frees := uint64(a.frees * float64(bytes))
		if a.category == "Feature maps" {
			frees = uint64(a.frees * float64(e.Composition.IterationBatchBytes))
		}
		found = append(found, report.Advice{Rule: a.rule, FreesBytes: frees,
			Text: fillIn(a.text, map[string]string{"held": report.SizeText(bytes), "share": percentOfUsed(e, bytes),
				"frees": report.SizeText(frees)})})
	}
	return found
}

// merged puts advice that says more behind what is urgent, and leaves out what it says better.
func merged(list, found []report.Advice) []report.Advice {
	if len(found) == 0 {
		return list
	}
	list = slices.DeleteFunc(list, func(a report.Advice) bool {
		return slices.Contains(vagueAdvice, a.Rule) || slices.ContainsFunc(found, func(b report.Advice) bool {
			return a.Rule == b.Rule
		})
	})
	at := 0
	for at < len(list) && slices.Contains(urgentAdvice, list[at].Rule) &&
		(list[at].Rule != "fragmentation" || list[at].FreesBytes >= found[0].FreesBytes) {
		at++
	}
	return slices.Insert(list, at, found...)
}

// Complete adds to the advice for out-of-memory events of a run in PyTorch what only its iterations, and the stacks of
// all that is live, tell.
func Complete(s *report.Summary) {
	if s.Versions["torch"] == "" {
		return
	}
	for i := range s.OOM.Events {
		e := &s.OOM.Events[i]
		if e.UsedBytes == 0 || e.Outcome != report.OOMFailed {
			continue
		}
		if s.Training != nil {
			found := append(loadedTwice(e), longerInput(s.Training, e)...)
			if slices.ContainsFunc(e.Advice, func(a report.Advice) bool { return a.Rule == "kept" }) {
				found = slices.DeleteFunc(found, func(a report.Advice) bool { return idleWhereKept(e, &a) })
			}
			e.Advice = merged(e.Advice, found)
		}
		for k := range s.OOM.Retries {
			if r := &s.OOM.Retries[k]; r.FirstTimeNS == e.TimeNS && r.Leaves() {
				e.Advice = failedAttempts(e.Advice, r)
			}
		}
	}
}
