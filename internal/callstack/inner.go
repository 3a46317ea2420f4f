package callstack

import (
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
)

// Inner returns the innermost Python function that belongs neither to a framework nor to the interpreter: in a program
// driven by a library, the library's line that does the work. ok is false if there is none; gradient is true for a line
// of the forward pass whose gradient is computed.
func (j *Classifier) Inner(s *Stack) (f *Frame, gradient, ok bool) {
	for i, f := range s.All {
		if f.Kind == symbol.Python && !j.isInfrastructure(f) {
			return f, i >= s.own, true
		}
	}
	return nil, false, false
}

// OperatorIn names the framework operator that allocated the memory. In a backward pass that is the step of the
// gradient computation, such as "autograd: MmBackward0", unless Python computes the gradient; in compiled code the
// operators that a kernel is made of.
func OperatorIn(all []*Frame) string {
	end := 0
	for end < len(all) && all[end].Kind != symbol.Python {
		end++
	}
	if end < len(all) && all[end].Compiled != "" {
		return report.CompiledPrefix + all[end].Compiled
	}
	if node := bestOf(all[:end], FoldNode, FoldNode); node != nil && !strings.HasSuffix(node.Title(), pythonNode) {
		return node.Title()
	}
	if f := bestOf(all[:end], foldOperator, foldHelper); f != nil {
		return operatorTitle(f.Title())
	}
	return report.NoOperator
}

// pythonNode is PyTorch's name of every gradient function written in Python.
const pythonNode = " PyNode"

// operatorTitle is a native operator's name without its types: mxnet::op::FullyConnectedCompute of
// mxnet::op::FullyConnectedCompute<mshadow::gpu>(...).
func operatorTitle(title string) string {
	if i := strings.IndexAny(title, "<("); i > 0 {
		return title[:i]
	}
	return title
}
