package layout

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// keptShown is how many holders a sentence names, and keptPart the least part of the allocated bytes, as a divisor, of
// a holder to be named.
const (
	keptShown = 2
	keptPart  = 10
)

// KeptBy describes in a sentence or two what keeps most of the tensors alive, and how much is freed by dropping it; ""
// if nothing keeps much of the allocated bytes. That parameters and the state of optimizers are kept is no news, unless
// there is more of them than had not grown: grown is how much of what is allocated had.
func KeptBy(k *report.KeptBy, allocated, grown uint64) (text string, bytes uint64) {
	if k == nil {
		return "", 0
	}
	var kept, garbage []string
	holders := withoutKeys(k.Holders, allocated/keptPart)
	for i := range holders {
		h := &holders[i]
		if h.Path == report.KeptUnknown || isOfRunningPass(h) || isPassing(k, h) ||
			h.IsModel() && h.Bytes <= allocated-min(allocated, grown) {
			continue
		}
		if len(kept)+len(garbage) == keptShown {
			break
		}
		if most := h.FreesBytes + h.SharedBytes; most == 0 || most < allocated/keptPart {
			continue
		}
		if bytes += h.FreesBytes; h.Garbage {
			garbage = append(garbage, keptGarbage(k, h))
			continue
		}
		kept = append(kept, fmt.Sprintf("%s: %s (%s)", sanitize.Text(h.By()), keptBytes(h), keptWhat(h)))
	}
	if len(kept) > 0 {
		when := ""
		if k.Occasion == report.KeptWhileGrowing {
			when = ", when " + Bytes(k.AllocatedBytes) + " were in use,"
		}
		garbage = append([]string{"Kept" + when + " " + strings.Join(kept, "; and ") + "."}, garbage...)
	}
	return strings.Join(garbage, " "), bytes
}

// isPassing reports whether a holder may be what the program worked on when it was searched meanwhile: a single tensor,
// such as a batch.
func isPassing(k *report.KeptBy, h *report.Kept) bool {
	return k.Occasion == report.KeptWhileGrowing && h.Tensors == 1 && h.GraphNodes == 0
}

// leastKeys is how many entries of a dictionary are told as one.
const leastKeys = 3

var keyOfPath = regexp.MustCompile(`\['[^']*'\]`)

// withoutKeys takes holders that differ in the keys of a dictionary alone, and hold less than least each, as one.
func withoutKeys(list []report.Kept, least uint64) (all []report.Kept) {
	type kind struct {
		path, types string
		garbage     bool
	}
	kindOf := func(h *report.Kept) kind {
		return kind{keyOfPath.ReplaceAllString(h.Path, "[*]"), h.Types, h.Garbage}
	}
	small := func(h *report.Kept) bool {
		return h.FreesBytes+h.SharedBytes < least && keyOfPath.MatchString(h.Path)
	}
	count, first := map[kind]int{}, map[kind]int{}
	for i := range list {
		if small(&list[i]) {
			count[kindOf(&list[i])]++
		}
	}
	for i := range list {
		h := list[i]
		if k := kindOf(&h); small(&h) && count[k] >= leastKeys {
			if at, begun := first[k]; begun {
				join(&all[at], &h)
				continue
			}
			first[k], h.Path = len(all), k.path
		}
		all = append(all, h)
	}
	if len(first) > 0 {
		slices.SortStableFunc(all, func(a, b report.Kept) int { return cmp.Compare(b.FreesBytes, a.FreesBytes) })
	}
	return all
}

// join adds what b holds to a.
func join(a, b *report.Kept) {
	a.Tensors, a.Bytes, a.HiddenBytes = a.Tensors+b.Tensors, a.Bytes+b.Bytes, a.HiddenBytes+b.HiddenBytes
	a.GraphNodes, a.GraphBytes = a.GraphNodes+b.GraphNodes, a.GraphBytes+b.GraphBytes
	a.FreesBytes, a.SharedBytes = a.FreesBytes+b.FreesBytes, a.SharedBytes+b.SharedBytes
	a.FreesAbout, a.FreesAtMost = a.FreesAbout || b.FreesAbout, a.FreesAtMost || b.FreesAtMost
}

// keptGarbage describes what only reference cycles hold. At the end of a program its functions have returned, and what
// their variables held until then looks like garbage as well.
func keptGarbage(k *report.KeptBy, h *report.Kept) string {
	format := "%s is garbage in reference cycles (%s; %s): gc.collect() frees it."
	if k.Occasion == report.KeptAtEnd {
		format = "%s was in reference cycles at the end (%s; %s): gc.collect() frees it, unless a function that has " +
			"returned by then held it."
	}
	return fmt.Sprintf(format, keptBytes(h), KeptName(h), keptWhat(h))
}

// isOfRunningPass reports whether a holder is of a call that runs and goes on with that, so that dropping it frees
// nothing: others hold what it does, too. It is a variable with a graph, as the input of a layer in a forward pass; any
// that is the tensor itself, or a library's; one of a function forward, but what its module keeps, also where it is not
// known whether others hold it; or an argument without a name, of whose graph others hold most. So is a single tensor
// whose graph others hold, as a backward pass does that of its loss.
func isOfRunningPass(h *report.Kept) bool {
	if h.Tensors == 1 && h.GraphNodes > 0 && h.FreesBytes <= h.Bytes && h.SharedBytes > h.Bytes {
		return true
	}
	if h.IsArgument() {
		return h.GraphNodes > 0 && h.SharedBytes > h.FreesBytes
	}
	if h.Path == "?Tensor" {
		return h.GraphNodes > 0 && h.Tensors == 1 && h.FreesBytes <= h.Bytes
	}
	_, variable, _ := strings.Cut(h.Path, ", variable ")
	if !strings.HasPrefix(h.Path, "in ") || h.FreesBytes >= h.SharedBytes/keptPart {
		return h.IsOfForward() && h.FreesAtMost
	}
	return h.GraphNodes > 0 && h.SharedBytes > h.Bytes || h.Types == "Tensor" || h.IsOfForward() ||
		strings.Contains(variable, " of ")
}

// KeptName is how tensors are reached, as memtrace ctl PID referrers shows it.
func KeptName(h *report.Kept) string { return sanitize.Text(h.Name()) }

// KeptRow returns for a holder the bytes freed with it, how its tensors are reached, and what they are.
func KeptRow(h *report.Kept) (bytes, name, what string) {
	name, what = KeptName(h), keptWhat(h)
	if h.Garbage {
		name = "garbage: " + name
	}
	return keptBytes(h), name, what
}

// keptBytes is what is freed with a holder. What others hold as well is only freed once they let go, too.
func keptBytes(h *report.Kept) string {
	switch {
	case isShared(h):
		return "at most " + Bytes(h.FreesBytes+h.SharedBytes)
	case h.FreesAtMost:
		return "at most " + Bytes(h.FreesBytes)
	case h.FreesAbout:
		return "about " + Bytes(h.FreesBytes)
	}
	return Bytes(h.FreesBytes)
}

// isShared reports whether others hold a good part of what a holder does.
func isShared(h *report.Kept) bool { return h.SharedBytes > h.FreesBytes/keptPart }

// keptWhat describes what is kept: tensors, and what their autograd graphs have saved.
func keptWhat(h *report.Kept) string {
	text := Plural(h.Tensors, "tensor", "tensors")
	switch {
	case h.GraphBytes > 0:
		text += "; autograd graph with " + Bytes(h.GraphBytes)
	case h.GraphNodes > 0 && (h.FreesAbout || h.FreesAtMost):
		text += "; autograd graph of " + Plural(h.GraphNodes, "node", "nodes")
	}
	if h.Tensors == 1 && h.GraphNodes > 0 && h.FreesBytes > 2*h.Bytes && !isShared(h) {
		text += ", which .detach() drops"
	}
	return text + KeptViews(h) + KeptShared(h)
}

// KeptViews says how much of what a holder's tensors keep they show, where they are views of larger storages that
// nothing else holds; "" where they show most of it.
func KeptViews(h *report.Kept) string {
	if h.GraphNodes > 0 || h.Garbage || isShared(h) || h.HiddenBytes < h.Bytes/2 || h.HiddenBytes == 0 {
		return ""
	}
	shows := Bytes(h.Bytes - min(h.Bytes, h.HiddenBytes))
	if h.Tensors == 1 {
		return fmt.Sprintf("; a view that shows %s of it, .clone() frees the rest", shows)
	}
	return fmt.Sprintf("; views that show %s of it, .clone() of them frees the rest", shows)
}

// KeptShared says how much of what a holder has others hold as well; "" where that is little.
func KeptShared(h *report.Kept) string {
	if !isShared(h) {
		return ""
	}
	return "; others hold " + Bytes(h.SharedBytes) + " of it as well"
}
