package oom

import (
	"slices"

	"memtrace/analyzer/report"
)

// askKept speaks of what earlier iterations or passes left behind. Where it is much, a smaller batch only puts off the
// next refusal.
func askKept(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	c := e.Composition
	if !f.torch() || e.Outcome != report.OOMFailed || !c.Keeps(e.OwnBytes(), missing(e)) ||
		!c.KeepsGraphs && captures(e) {
		return 0, nil, false
	}
	w := words{"share": shareOf(e, c.OlderBytes), "now": "this iteration", "site": c.OlderSite,
		"passes": "It comes from about " + report.Number(c.OlderPasses) + " passes.",
		"remedy": "Look for a list, a cache or a history that only grows; keep results as .detach().cpu(), numbers as .item()."}
	if c.Passes > 1 {
		w["now"] = "the running forward pass"
	}
	if c.Passes > 1 && c.OlderSinceStep {
		w["passes"] = report.Number(c.Passes) + " forward passes ran since " + c.SinceWords() + "."
	}
	if c.KeepsGraphs {
		w["remedy"] = "These are activations that no backward pass has freed: run passes that need no gradient under torch.no_grad(), add up loss.item() and not the loss, " +
			"and keep outputs only as .detach()."
	}
	if c.KeepsGraphs && c.Passes > 1 && c.OlderSinceStep {
		w["remedy"] += " Where one backward pass is to go through all of them, let it go through fewer, or make the batch smaller."
	}
	if c.OlderSite == "" {
		w["site"] = "forward passes"
	}
	return c.OlderBytes, w, true
}

// failedAttempts is for a program that tries again after a refusal and still has what the attempts before made: then a
// smaller batch, which it may have tried, is not what helps.
func failedAttempts(list []report.Advice, r *report.OOMRetries) []report.Advice {
	text := fillIn("At a later refusal, {left} of the {live} in blocks had been made by attempts that failed before: an exception, its traceback or a list still holds them. "+
		"Leave the except block, or delete the exception, before the next attempt, and clear what an attempt has filled; that gives back {left}.",
		words{"left": report.SizeText(r.LeftBytes),
			"live": report.SizeText(r.LiveBytes)})
	list = slices.DeleteFunc(list, func(a report.Advice) bool {
		return a.Rule == "activations" || a.Rule == "longer-input" || slices.Contains(vagueAdvice, a.Rule)
	})
	return slices.Insert(list, 0, report.Advice{Rule: "failed-attempts", FreesBytes: r.LeftBytes, Text: text})
}

// captures reports whether the program captures CUDA graphs, which keep what they read and write on purpose.
func captures(e *report.OOMEvent) bool { return e.Allocator != nil && len(e.Allocator.Private) > 0 }
