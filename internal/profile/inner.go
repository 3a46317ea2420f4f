package profile

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
)

// InnerKey is the key of that line, else the site.
func InnerKey(r *Resolver, id uint64) string {
	stack := r.Stacks.Of(callstack.PairOf(id))
	if stack.Key == report.BeforeStart {
		return stack.Key
	}
	f, gradient, ok := r.Stacks.Classifier.Inner(stack)
	switch key := ""; {
	case !ok:
		return stack.Key
	case gradient:
		key = stack.Backward
		fallthrough
	default:
		return key + r.Stacks.Classifier.Site(f)
	}
}

// InnerLabel removes the middle of long paths; "" if there is nothing to remove.
func InnerLabel(r *Resolver, id uint64) string {
	key := InnerKey(r, id)
	if short := ShortPlace(key); short != key {
		return short
	}
	return ""
}

// ShortPlace shortens the key of a place deep in a package to the names of the package and the file:
// "transformers/…/modeling_llama.py:197 forward".
func ShortPlace(key string) string {
	place, rest, _ := strings.Cut(key, " ")
	if strings.HasPrefix(key, "backward ") {
		prefix := 2
		words := strings.SplitN(key, " ", prefix+2)
		if len(words) < prefix+2 {
			return key
		}
		return strings.Join(words[:prefix], " ") + " " + ShortPlace(words[prefix]+" "+words[prefix+1])
	}
	parts := strings.Split(place, "/")
	if len(parts) < 4 {
		return key
	}
	return parts[0] + "/…/" + parts[len(parts)-1] + " " + rest
}

func OperatorText(r *Resolver, id uint64) string {
	return callstack.OperatorIn(r.Stacks.Of(callstack.PairOf(id)).All)
}
