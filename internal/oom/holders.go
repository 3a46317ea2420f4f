package oom

import (
	"strings"

	"memtrace/analyzer/report"
)

// isCollection reports whether a holder is several tensors without graphs that the program keeps by a name, other than
// a model and what a forward pass that runs has of its own.
func isCollection(h *report.Kept) bool {
	return h.Tensors > 1 && h.GraphNodes == 0 && !h.FreesAtMost && !h.Garbage && !h.IsModel() && !h.IsOfForward() &&
		!strings.HasPrefix(h.Path, "?")
}

// outlived takes advice on the activations of an iteration back where a collection of tensors, such as the states that
// a server has for each user, is most of them: nothing says that it ends with the iteration. It has more of them than
// one pass keeps, such as keys and values for each layer.
func outlived(e *report.OOMEvent, a *report.Advice, k *report.KeptBy) {
	if a.Rule != "activations" {
		return
	}
	passKeeps := uint64(64)
	for i := range k.Holders {
		if h := &k.Holders[i]; h.IsModel() {
			passKeeps = max(passKeeps, 2*h.Tensors)
		}
	}
	for i := range k.Holders {
		h := &k.Holders[i]
		if isCollection(h) && h.Tensors > passKeeps && 2*h.FreesBytes > e.Composition.IterationFeatureBytes {
			a.Text = report.SizeText(h.FreesBytes) + " in " + report.Number(h.Tensors) + " tensors are kept " + h.By() +
				". Where that outlives an iteration, a smaller batch only puts off the next refusal: drop what is no " +
				"longer needed, or keep it on the host."
			a.FreesBytes = 0
			return
		}
	}
}

// orphaned speaks of parameters that only an optimizer has, in place of advice on its state or theirs.
func orphaned(e *report.OOMEvent, k *report.KeptBy) {
	for i := range k.Holders {
		h := &k.Holders[i]
		if !h.IsOrphans() || h.FreesBytes < e.AllocatedBytes/smallPart {
			continue
		}
		text := fillIn("{frees} in {tensors} tensors are parameters that nothing but an optimizer has, and their state "+
			"({path}). Where a model is replaced, make a new optimizer for it and drop the old one, too; that gives back "+
			"{frees}.", words{"frees": report.SizeText(h.FreesBytes), "tensors": report.Number(h.Tensors),
			"path": strings.TrimSuffix(h.Name(), report.Orphans)})
		e.Advice = insteadOf(e.Advice, report.Advice{Rule: "orphans", FreesBytes: h.FreesBytes, Text: text},
			"optimizer-state", "parameters", "kept")
		return
	}
}

// replaced speaks of a result that is made anew at its line while a variable of the function still has the one before.
func replaced(e *report.OOMEvent, k *report.KeptBy) {
	at, in, _ := strings.Cut("/"+e.Site, " ")
	for i := range k.Holders {
		h := &k.Holders[i]
		place, variable, found := strings.Cut(strings.TrimPrefix(h.Path, "in "), ", variable ")
		function, line, _ := strings.Cut(strings.TrimSuffix(place, ")"), " (")
		if !found || h.Tensors != 1 || h.GraphNodes > 0 || h.FreesAtMost || strings.ContainsAny(variable, ".[( ") ||
			!strings.HasSuffix(at, "/"+line) || !strings.HasSuffix(in, function) ||
			h.FreesBytes < e.AllocatedBytes/smallPart ||
			max(h.Bytes, e.RequestedBytes)-min(h.Bytes, e.RequestedBytes) > e.RequestedBytes/smallPart {
			continue
		}
		made, known := e.Ledger("site").Largest(report.OwnerBlocks, func(r report.LedgerRow) bool {
			return r.Key == e.Site
		})
		if !known || made.Bytes < h.Bytes {
			continue
		}
		text := fillIn("The request was made at {site}, and what that line made before, {frees}, is still in the variable "+
			"{name}: del {name} before the line gives it back.", words{"site": e.Site, "name": variable,
			"frees": report.SizeText(h.FreesBytes)})
		e.Advice = insteadOf(e.Advice, report.Advice{Rule: "replaced", FreesBytes: h.FreesBytes, Text: text},
			vagueAdvice...)
		return
	}
}
