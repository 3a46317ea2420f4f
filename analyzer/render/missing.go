package render

import (
	"fmt"

	"memtrace/analyzer"
)

// noParameters says why there are no names, for the three reasons are mended in three ways.
func noParameters(s *analyzer.Summary) string {
	if len(s.Training.Parameters) > 0 {
		return ""
	}
	return "the trace has no names of parameters: " + unnamed(s)
}

func noModules(s *analyzer.Summary) string {
	if s.Training.Modules != nil {
		return ""
	}
	return "the trace has no names of modules: " + unnamed(s)
}

// unnamed explains a trace in which nothing has a name.
func unnamed(s *analyzer.Summary) string {
	if s.Framework.Empty() {
		if s.Driver.Empty() {
			return "the program made no CUDA memory call"
		}
		return "no framework reported its blocks; names come from PyTorch and MXNet under Python"
	}
	key := "torch"
	if s.Versions["torch"] == "" && s.Versions["mxnet"] != "" {
		key = "mxnet"
	}
	name := frameworkName(s)
	switch state := s.Training.Adapters[key]; state {
	case "":
		return fmt.Sprintf("the recorder asked %s for none, because MEMTRACE_ADAPTERS left it out, no Python runs in the program, or the trace is older than names; record again with MEMTRACE_ADAPTERS unset", name)
	case "on":
		return fmt.Sprintf("%s told of no model with memory on a GPU up to the trace's end", name)
	default:
		return fmt.Sprintf("the recorder could not ask %s for them (%s)", name, clean(state))
	}
}

func noIterations(s *analyzer.Summary) string {
	if len(s.Training.Iterations) > 0 {
		return ""
	}
	return "nothing was allocated, so there are no iterations"
}
