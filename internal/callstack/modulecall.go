package callstack

import "strings"

// ModuleCaller names the program's line that runs the outermost module of a stack, "" where none is known to.
func (c *Stacks) ModuleCaller(pair Pair) string {
	all := c.Of(pair).All
	for i := len(all) - 1; i >= 0; i-- {
		if !callsModule(all[i]) {
			continue
		}
		for _, f := range all[i+1:] {
			if f.User {
				return c.Classifier.Site(f)
			}
		}
		return ""
	}
	return ""
}

// callsModule reports whether PyTorch's code that runs a module's forward and hooks is in a frame.
func callsModule(f *Frame) bool {
	return strings.HasSuffix(f.File, "torch/nn/modules/module.py") && strings.HasSuffix(f.Function, "_call_impl")
}
