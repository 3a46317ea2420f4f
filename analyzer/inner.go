package analyzer

import (
	"regexp"
	"strings"

	"memtrace/analyzer/symbol"
)

// NoOperator is the operator of blocks whose call stack shows none.
const NoOperator = "(no operator)"

// frameworkFile matches Python files of the frameworks themselves, which say how an operator was reached and not what for.
var frameworkFile = regexp.MustCompile(`(^|/)(torch|torchgen|functorch|mxnet|jax|jaxlib|tensorflow|triton|numba|cupy|cupyx|numpy)/`)

// inner returns the innermost Python function that belongs neither to a framework nor to the interpreter: in a program that a library drives, the library's line that does the
// work. ok is false if there is none; gradient, if it is a line of the forward pass whose gradient is computed.
func (s *callStack) inner() (f *frame, gradient, ok bool) {
	for i, f := range s.all {
		if f.Kind == symbol.Python && f.File != "" && f.File[0] != '<' && f.fold != foldHide && !frameworkFile.MatchString(f.File) && !inStandardLibrary(f.File) {
			return f, i >= s.own, true
		}
	}
	return nil, false, false
}

func inStandardLibrary(file string) bool {
	return standard.MatchString(file) && !installed.MatchString(file)
}

// innerKey names that line, else the site.
func innerKey(r *resolver, id uint64) string {
	stack := r.stacks.of(pairOf(id))
	f, gradient, ok := stack.inner()
	switch key := ""; {
	case !ok:
		return stack.key
	case gradient:
		key = backwardOf[false]
		fallthrough
	default:
		return key + r.stacks.judge.site(f)
	}
}

// innerLabel leaves the middle of long paths out; "" if there is none to leave out.
func innerLabel(r *resolver, id uint64) string {
	key := innerKey(r, id)
	if short := ShortPlace(key); short != key {
		return short
	}
	return ""
}

// ShortPlace writes the key of a place that lies deep in a package with the package's and the file's name only: "transformers/…/modeling_llama.py:197 forward".
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

// operatorText names the innermost operator of a framework, else the step of a gradient computation.
func operatorText(r *resolver, id uint64) string {
	stack := r.stacks.of(pairOf(id))
	for _, want := range []fold{foldOperator, foldNode} {
		for _, f := range stack.all {
			if f.fold == want {
				return f.title()
			}
		}
	}
	return NoOperator
}
