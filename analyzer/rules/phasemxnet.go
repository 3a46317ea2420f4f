package rules

import "strings"

// mxnetPhase returns the phase that a function of MXNet's library speaks for. Its operators run in threads of its
// engine, where no Python frame says more. What computes an operator's result runs in the optimizer and for initial
// values as well, so that only those which exist in two directions tell them apart.
func mxnetPhase(function string) phase {
	if !strings.HasPrefix(function, "mxnet::") {
		return phaseUnsaid
	}
	switch last := lastPart(function); {
	case strings.HasPrefix(function, "mxnet::CopyFromTo") && strings.Contains(function, "<mshadow::cpu, mshadow::gpu>"):
		return phaseData
	case strings.Contains(last, "Backward") || strings.Contains(function, "GradCompute"):
		return phaseBackward
	case last == "Forward":
		return phaseForward
	case strings.HasPrefix(function, "mxnet::op::") && strings.Contains(function, "Update"):
		return phaseOptimizer
	}
	return phaseUnsaid
}
