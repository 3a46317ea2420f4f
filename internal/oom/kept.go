package oom

import (
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// What is to be done about what is kept.
const (
	dropLists  = "Look for a list, a cache or a history that only grows; keep results as .detach().cpu(), numbers as .item()."
	dropGraphs = "These are activations that no backward pass has freed: run passes that need no gradient under torch.no_grad(), add up loss.item() and not the loss, " +
		"and keep outputs only as .detach()."
	fewerPasses = " Where one backward pass is to go through all of them, let it go through fewer, or make the batch smaller."
)

// What vague advice says of training, and of a step.
const (
	smallerStep       = "A smaller batch and mixed precision (torch.autocast) shrink what a step holds"
	alsoCheckpointing = "; in training, so does gradient checkpointing (torch.utils.checkpoint)"
	orCheckpointing   = " or gradient checkpointing (torch.utils.checkpoint)"
	commaOr           = ", or gradient checkpointing (torch.utils.checkpoint),"
)

// withoutGraphs takes out of vague advice what only helps where there are graphs for a backward pass, and names what
// holds most of the blocks instead of a step, if something does that outlives one.
func withoutGraphs(e *report.OOMEvent, a *report.Advice, k *report.KeptBy) {
	if !slices.Contains(vagueAdvice, a.Rule) {
		return
	}
	a.Text = strings.NewReplacer(alsoCheckpointing, "", orCheckpointing, "", commaOr, "").Replace(a.Text)
	for i := range k.Holders {
		h := &k.Holders[i]
		if h.Tensors > 1 && !h.FreesAtMost && !h.Garbage && !h.IsModel() && strings.HasPrefix(h.Path, "in ") &&
			2*h.FreesBytes > e.AllocatedBytes {
			a.Text = strings.Replace(a.Text, smallerStep, "Most of it, "+report.SizeText(h.FreesBytes)+" in "+
				report.Number(h.Tensors)+" tensors, is kept "+h.Name()+": keep less of it, or keep it on the host", 1)
		}
	}
}

// remedied says what is to be done about what is kept by who was found to keep most of it: garbage needs no list to be
// cleared, and a single tensor that has a long graph is to be detached.
func remedied(e *report.OOMEvent, k *report.KeptBy) {
	n := slices.IndexFunc(e.Advice, func(a report.Advice) bool { return a.Rule == "kept" })
	if n < 0 {
		return
	}
	for _, h := range k.Holders {
		if 2*(h.FreesBytes+h.SharedBytes) < e.Advice[n].FreesBytes {
			continue
		}
		says := ""
		switch {
		case h.Garbage:
			says = "It is garbage in reference cycles: gc.collect() frees it, and without the cycles it is freed at once."
		case h.Tensors == 1 && h.GraphNodes > 0:
			says = "One tensor has the graph of all that it was computed from: " + h.Name() +
				". Unless a backward pass is to go through all of it, keep it as .detach()."
		}
		if text := &e.Advice[n].Text; says != "" {
			*text = strings.Replace(*text, fewerPasses, "", 1)
			*text = strings.NewReplacer(dropLists, says, dropGraphs, says).Replace(*text)
		}
		return
	}
}

// askKept speaks of what earlier iterations or passes left behind. Where it is much, a smaller batch only puts off the
// next refusal.
func askKept(e *report.OOMEvent, f AdviceFacts) (uint64, words, bool) {
	c := e.Composition
	if !f.torch() || e.Outcome != report.OOMFailed || !c.Keeps(e.OwnBytes(), missing(e)) ||
		!c.KeepsGraphs && captures(e) {
		return 0, nil, false
	}
	w := words{"share": shareOf(e, c.OlderBytes), "now": "this iteration", "site": c.OlderSite,
		"blocks": " A single call stack made " + report.Number(c.OlderPasses) + " blocks of it.", "remedy": dropLists}
	if c.Passes > 1 {
		w["now"], w["blocks"] = "the latest of "+c.RunWords(), ""
	}
	if c.KeepsGraphs {
		w["remedy"] = dropGraphs
	}
	if c.KeepsGraphs && c.Passes > 1 && c.OlderSinceStep {
		w["remedy"] += fewerPasses
	}
	if c.OlderSite == "" {
		w["site"] = "forward passes"
	}
	return c.OlderBytes, w, true
}

// failedAttempts is for a program that tries again after a refusal and still has what the attempts before made: then a
// smaller batch, which it may have tried, is not what helps. It is said of the first refusal, too, which is the one
// that reports show.
func failedAttempts(list []report.Advice, r *report.OOMRetries) []report.Advice {
	return insteadOfSmaller(list, "At a later refusal, ", r.LeftBytes, r.LiveBytes)
}

// leftByAttempts is failedAttempts for the refusal at which that was so.
func leftByAttempts(list []report.Advice, e *report.OOMEvent, f AdviceFacts) []report.Advice {
	c := e.Composition
	if c == nil || !f.torch() || e.Outcome != report.OOMFailed || !report.LeavesOf(c.LeftBytes, c.Bytes()) {
		return list
	}
	return insteadOfSmaller(list, "", c.LeftBytes, c.Bytes())
}

func insteadOfSmaller(list []report.Advice, when string, left, live uint64) []report.Advice {
	text := fillIn(when+"{left} of the {live} in blocks had been made by attempts that failed before: an exception, its traceback or a list still holds them. "+
		"Leave the except block, or delete the exception, before the next attempt, and clear what an attempt has filled; that gives back {left}.",
		words{"left": report.SizeText(left), "live": report.SizeText(live)})
	return insteadOf(list, report.Advice{Rule: "failed-attempts", FreesBytes: left, Text: text},
		append([]string{"activations", "longer-input"}, vagueAdvice...)...)
}

// insteadOf puts advice first, in place of that of some rules.
func insteadOf(list []report.Advice, first report.Advice, rules ...string) []report.Advice {
	list = slices.DeleteFunc(list, func(a report.Advice) bool { return slices.Contains(rules, a.Rule) })
	return slices.Insert(list, 0, first)
}

// captures reports whether the program captures CUDA graphs, which keep what they read and write on purpose.
func captures(e *report.OOMEvent) bool { return e.Allocator != nil && len(e.Allocator.Private) > 0 }
