package rules

import (
	"slices"
	"strings"
)

// phaseNames are the parts of a training program that call stacks distinguish.
var phaseNames = [...]string{"init", "forward", "recompute", "backward", "optimizer", "data", "other"}

type phase uint8

const (
	phaseInit phase = iota
	phaseForward
	phaseRecompute // forward once more, for the sake of gradients
	phaseBackward
	phaseOptimizer
	phaseData
	phaseOther
	phaseNone phase = 255 // a frame that belongs to every phase
)

// GradientOf is the function of the frame between the frames of a backward pass and those of the forward operator whose
// gradient it computes.
const GradientOf = "(gradient of)"

// phaseClue assigns a frame to a phase: its function's last part is name or, with inside, contains it; its file
// contains file. Empty fields match everything.
type phaseClue struct {
	name   string
	inside bool
	file   string
	phase  phase
}

// phaseClues are tried in order; the first match decides the frame's phase.
var phaseClues = []phaseClue{
	{"torch::autograd::Engine::", true, "", phaseBackward},
	{"torch::autograd::generated::", true, "", phaseBackward}, // steps, where a stack was cut below the engine
	{GradientOf, false, "", phaseBackward},
	{"unpack_hook", false, "torch/utils/checkpoint.py", phaseRecompute},
	{"recompute_fn", false, "torch/utils/checkpoint.py", phaseRecompute},
	{"backward", false, "torch/utils/checkpoint.py", phaseRecompute},
	{"backward", false, "torch/_tensor.py", phaseBackward},
	{"", false, "torch/autograd/__init__.py", phaseBackward},
	{"backward", false, "mxnet/", phaseBackward},
	{"MXAutogradBackward", true, "", phaseBackward},
	{"", false, "torch/optim/", phaseOptimizer},
	{"", false, "mxnet/optimizer/", phaseOptimizer},
	{"", false, "mxnet/gluon/trainer.py", phaseOptimizer},
	{"update", false, "mxnet/module/", phaseOptimizer},
	{"", false, "mxnet/kvstore/", phaseOptimizer},
	{"_apply", false, "torch/nn/modules/module.py", phaseInit},
	{"load_state_dict", false, "torch/nn/modules/module.py", phaseInit},
	{"__init__", false, "torch/nn/", phaseInit},
	{"", false, "torch/nn/init.py", phaseInit},
	{"reset_parameters", false, "torch/nn/", phaseInit},
	{"", false, "mxnet/initializer.py", phaseInit},
	{"", false, "mxnet/gluon/parameter.py", phaseInit},
	{"bind", false, "mxnet/", phaseInit},
	{"simple_bind", false, "mxnet/", phaseInit},
	{"_wrapped_call_impl", false, "torch/nn/modules/module.py", phaseForward},
	{"_call_impl", false, "torch/nn/modules/module.py", phaseForward},
	{"forward", false, "", phaseForward},
	{"hybrid_forward", false, "", phaseForward},
	{"", false, "torch/nn/functional.py", phaseForward},
	{"", false, "torch/utils/data/", phaseData},
	{"", false, "mxnet/gluon/data/", phaseData},
	{"", false, "mxnet/io/", phaseData},
	{"split_and_load", false, "mxnet/gluon/utils.py", phaseData},
	{"pin_memory", true, "", phaseData},
	{"dispatch_to", true, "", phaseData},
	{"THPVariable_cuda", true, "", phaseData},
}

// ownPhase returns the phase of a frame by itself, phaseNone if it has none.
func (f *Frame) ownPhase() phase {
	for i := range phaseClues {
		c := &phaseClues[i]
		if !strings.Contains(f.File, c.file) {
			continue
		}
		if c.name == "" || !c.inside && f.IsIn(c.name) || c.inside && slices.ContainsFunc(f.Functions,
			func(function string) bool { return strings.Contains(function, c.name) }) {
			return c.phase
		}
	}
	for _, function := range f.Functions {
		if p := mxnetPhase(function); p != phaseNone {
			return p
		}
	}
	return phaseNone
}

// IsIn reports whether a frame is in a function of this name, of any class: CPython puts that in front since 3.11.
func (f *Frame) IsIn(name string) bool {
	return slices.ContainsFunc(f.Functions, func(function string) bool { return lastPart(function) == name })
}

// lastPart is a function without its class: forward of Block.forward.
func lastPart(function string) string {
	return function[max(strings.LastIndexByte(function, '.'), strings.LastIndexByte(function, ':'))+1:]
}

// PhaseOf derives from a call stack, innermost frame first, the part of a training program that allocated the memory.
// The innermost frame with a phase decides, so that a closure of an optimizer that runs the model is forward. A forward
// pass repeated by a checkpoint is recompute. A transfer counts as data only if no other phase is around it: parts of
// models are moved by the same calls. Threads that compute gradients are backward.
func PhaseOf(frames []*Frame, thread string) string {
	return phaseNames[phaseOf(frames, thread, (*Frame).ownPhase)]
}

// ComputesGradients reports whether a thread of this name is one in which PyTorch runs backward passes.
func ComputesGradients(thread string) bool { return strings.HasPrefix(thread, "pt_autograd") }

func phaseOf(frames []*Frame, thread string, phaseOfFrame func(*Frame) phase) phase {
	transfer := false
	for i, f := range frames {
		switch p := phaseOfFrame(f); p {
		case phaseNone:
		case phaseData:
			transfer = true
		case phaseForward:
			if slices.ContainsFunc(frames[i+1:], func(f *Frame) bool { return phaseOfFrame(f) == phaseRecompute }) {
				return phaseRecompute
			}
			return p
		default:
			return p
		}
	}
	switch {
	case ComputesGradients(thread):
		return phaseBackward
	case transfer:
		return phaseData
	}
	return phaseOther
}
