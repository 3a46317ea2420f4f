package rules

import "strings"

// mxnetPhase returns the phase of a function of MXNet's library. Its operators run in threads of its engine, without
// Python frames. The functions that compute an operator's result run in the optimizer and for initial values as well,
// so that only operators with two directions distinguish the phases.
func mxnetPhase(function string) phase {
	if !strings.HasPrefix(function, "mxnet::") {
		return phaseNone
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
	return phaseNone
}
