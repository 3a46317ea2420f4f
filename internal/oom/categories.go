package oom

import (
	"slices"

	"memtrace/analyzer/report"
)

// categoryAdvice is what to try where most memory is of one category of training.
type categoryAdvice struct {
	category, rule string
	least          float64 // of what the process has; less is not worth the words
	// say returns about how much following the advice gives back, and its text; "" where there is nothing to try
	say func(e *report.OOMEvent, f AdviceFacts, held uint64) (frees uint64, text string)
}

var categoryAdvices = []categoryAdvice{
	{featureMaps, "activations", 0.2, sayActivations},
	{copies, "autocast-copies", 0.1, sayCopies},
	{optimizerState, "optimizer-state", 0.15, sayOptimizerState},
	{gradients, "gradients", 0.25, sayGradients},
	{parameters, "parameters", 0.4, sayParameters},
}

// urgentAdvice says what stands in the way whatever the memory is for. It comes first.
var urgentAdvice = []string{"larger-than-device", "own-limit", "pinned", "kept", "failed-attempts", "private-pools",
	"fragmentation", "multi-tensor", "idle-cache", "other-processes", "growing"}

// vagueAdvice is what can be said where categories are not known.
var vagueAdvice = []string{"untagged", "tagged", "fresh"}

// byCategory is what to try by what PyTorch's memory was for. A smaller batch gives back activations of the running
// iteration alone.
func byCategory(e *report.OOMEvent, f AdviceFacts) (found []report.Advice) {
	if e.Composition == nil || !f.torch() || e.UsedBytes == 0 || e.Outcome != report.OOMFailed {
		return nil
	}
	for _, a := range categoryAdvices {
		held := heldBy(e, a.category)
		if a.category == featureMaps {
			held = e.Composition.IterationFeatureBytes + heldBy(e, ofActivations)
		}
		if held == 0 || float64(held) < a.least*float64(e.OwnBytes()) {
			continue
		}
		frees, text := a.say(e, f, held)
		if text == "" {
			continue
		}
		found = append(found, report.Advice{Rule: a.rule, FreesBytes: frees,
			Text: fillIn(text, map[string]string{"held": report.SizeText(held), "share": shareOf(e, held),
				"frees": report.SizeText(frees)})})
	}
	return found
}

// merged puts advice that says more behind what is urgent, and leaves out what it says better. A setting comes before a
// second change of the program.
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
	list = slices.Insert(list, at, found...)
	from := slices.IndexFunc(list, func(a report.Advice) bool { return a.Rule == "fragmentation" })
	if to := at + 1; from > to {
		setting := list[from]
		list = slices.Insert(slices.Delete(list, from, from+1), to, setting)
	}
	return list
}

// CompleteAdvice adds to the advice for out-of-memory events of a run in PyTorch what only its iterations, and the
// stacks of all that is live, tell.
func CompleteAdvice(s *report.Summary) {
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
			if slices.ContainsFunc(found, func(a report.Advice) bool { return a.Rule == "longer-input" }) {
				usualSize(e)
			}
		}
		if s.KeptBy != nil && s.KeptBy.Occasion == report.KeptAtOOM && e == s.FirstFailure() {
			Differentiated(e, s.KeptBy)
		}
		for k := range s.OOM.Retries {
			if r := &s.OOM.Retries[k]; r.FirstTimeNS == e.TimeNS && r.Leaves() {
				e.Advice = failedAttempts(e.Advice, r)
			}
		}
	}
}
