package analyzer

import (
	"strings"

	"memtrace/analyzer/symbol"
)

// inner returns the innermost Python function that belongs neither to a framework nor to the interpreter: in a program that a library drives, the library's line that does the
// work. ok is false if there is none; gradient, if it is a line of the forward pass whose gradient is computed.
func (j *judge) inner(s *callStack) (f *frame, gradient, ok bool) {
	for i, f := range s.all {
		if f.Kind == symbol.Python && !j.beneath(f) {
			return f, i >= s.own, true
		}
	}
	return nil, false, false
}

// innerKey names that line, else the site.
func innerKey(r *resolver, id uint64) string {
	stack := r.stacks.of(pairOf(id))
	f, gradient, ok := r.stacks.judge.inner(stack)
	switch key := ""; {
	case !ok:
		return stack.key
	case gradient:
		key = stack.backward
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

func operatorText(r *resolver, id uint64) string { return operatorIn(r.stacks.of(pairOf(id)).all) }

// operatorIn names the operator of a framework that asked for the memory. In a backward pass that is the step of the gradient computation, such as "autograd: MmBackward0", unless
// Python computes the gradient.
func operatorIn(all []*frame) string {
	end := 0
	for end < len(all) && all[end].Kind != symbol.Python {
		end++
	}
	if node := bestOf(all[:end], foldNode, foldNode); node != nil && !strings.HasSuffix(node.title(), pythonNode) {
		return node.title()
	}
	if f := bestOf(all[:end], foldOperator, foldHelper); f != nil {
		return operatorTitle(f.title())
	}
	return NoOperator
}

// pythonNode is what every gradient function written in Python is called.
const pythonNode = " PyNode"

// operatorTitle is a native operator's name without its types: mxnet::op::FullyConnectedCompute of mxnet::op::FullyConnectedCompute<mshadow::gpu>(...).
func operatorTitle(title string) string {
	if i := strings.IndexAny(title, "<("); i > 0 {
		return title[:i]
	}
	return title
}
