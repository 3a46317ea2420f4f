package callstack

import (
	"path"
	"strconv"
	"strings"

	"memtrace/internal/symbol"
)

// fold is how useful a frame is to readers who did not write the libraries.
type fold uint8

const (
	foldKeep fold = iota // shown
	foldHide             // plumbing: shown only if there is nothing else
	// inside of a library: of such frames in a row only the outermost one, through which the library was called
	foldEntry

	// A run of native frames between two Python frames is shown as the innermost frame of the best kind in it. The last
	// two kinds count only at the inner end of a stack.
	foldOperator // an operator of a framework
	foldHelper   // an operator that operators use to get memory
	foldInner    // some other function of a framework
	foldNameless // the same, without a name

	// The frame that represents a thread that computes gradients, likewise.
	FoldNode   // the step of the computation
	foldEngine // what runs the steps
)

// foldRule defines how the frames that it matches are folded. Empty patterns match everything. Function and file
// patterns are prefixes, or with a leading "*" substrings; library patterns are prefixes of the object file's base
// name.
type foldRule struct {
	kind     symbol.Kind
	library  string
	function string
	file     string
	fold     fold
}

const (
	python = symbol.Python
	native = symbol.Native
)

// foldRules are tried in order; the first match decides. A native frame without a match is kept if it is the program's
// own, and is foldEntry otherwise, as are functions of a library's headers (inHeaderLibrary).
var foldRules = []foldRule{
	// memtrace itself.
	{native, "libmemtrace", "", "", foldHide},
	{python, "", "", "*/memtrace/_", foldHide},

	// The interpreter: its Python frames carry the same information.
	{symbol.Interpreter, "", "", "", foldHide},
	{native, "libpython", "", "", foldHide},
	{native, "python", "", "", foldHide},
	{python, "", "", "<frozen ", foldHide},
	{python, "", "", "<__array_function__", foldHide},
	{python, "", "", "*/runpy.py", foldHide},
	{python, "", "", "*/importlib/", foldHide},
	{python, "", "", "*/contextlib.py", foldHide},
	{python, "", "", "*/functools.py", foldHide},
	{python, "", "", "*/threading.py", foldHide},
	{python, "", "", "*/multiprocessing/", foldHide},
	{python, "", "", "*/concurrent/futures/", foldHide},
	{python, "", "", "*/asyncio/", foldHide},

	// The start of threads and programs, and C++ wrappers between them.
	{native, "libc.so", "", "", foldHide},
	{native, "libc-", "", "", foldHide},
	{native, "libpthread", "", "", foldHide},
	{native, "libstdc++", "", "", foldHide},
	{native, "ld-linux", "", "", foldHide},
	{native, "", "_start", "", foldHide},
	{native, "", "__libc_start", "", foldHide},
	{native, "", "start_thread", "", foldHide},
	{native, "", "__clone", "", foldHide},
	{native, "", "clone", "", foldHide},
	{native, "", "std::", "", foldHide},
	{native, "", "operator new", "", foldHide},

	// PyTorch, Python side.
	{python, "", "*_wrapped_call_impl", "*torch/nn/modules/module.py", foldHide},
	{python, "", "*_call_impl", "*torch/nn/modules/module.py", foldHide},
	{python, "", "*_apply", "*torch/nn/modules/module.py", foldHide},
	{python, "", "*convert", "*torch/nn/modules/module.py", foldHide},
	{python, "", "*<lambda>", "*torch/nn/modules/module.py", foldHide},
	{python, "", "", "*torch/_ops.py", foldHide},
	{python, "", "", "*torch/_compile.py", foldHide},
	{python, "", "", "*torch/_dynamo/", foldHide},
	{python, "", "", "*torch/_jit_internal.py", foldHide},
	{python, "", "", "*torch/_tensor.py", foldKeep}, // Tensor.backward; its callees add nothing
	{python, "", "", "*torch/autograd/__init__.py", foldHide},
	{python, "", "", "*torch/autograd/graph.py", foldHide},
	{python, "", "", "*torch/autograd/grad_mode.py", foldHide},
	{python, "", "", "*torch/amp/autocast_mode.py", foldHide},
	{python, "", "", "*torch/overrides.py", foldHide},
	{python, "", "", "*torch/utils/_contextlib.py", foldHide},
	{python, "", "", "*torch/utils/_python_dispatch.py", foldHide},
	{python, "", "*wrapper", "*torch/optim/", foldHide},
	{python, "", "*_use_grad", "*torch/optim/optimizer.py", foldHide},
	{python, "", "*maybe_fallback", "*torch/optim/optimizer.py", foldHide},

	// PyTorch, native side. Operators pass at::_ops once more at every turn through the dispatcher. The functions that
	// record call stacks for PyTorch's snapshots are innermost.
	{native, "", "torch::unwind::", "", foldHide},
	{native, "", "torch::CapturedTraceback::", "", foldHide},
	{native, "", "torch::cuda::(anonymous namespace)::gather", "", foldHide},
	{native, "", "c10::cuda::CUDACachingAllocator::", "", foldHide},
	{native, "", "c10::cuda::CUDAMallocAsync::", "", foldHide},
	{native, "", "c10::CachingHostAllocator", "", foldHide},
	{native, "", "c10::StorageImpl::", "", foldHide},
	{native, "", "c10::impl::", "", foldHide},
	{native, "", "at::_ops::empty", "", foldHelper},
	{native, "", "at::_ops::new_empty", "", foldHelper},
	{native, "", "at::_ops::resize", "", foldHelper},
	{native, "", "at::_ops::_resize", "", foldHelper},
	{native, "", "at::_ops::set_", "", foldHelper},
	{native, "", "at::_ops::", "", foldOperator},
	{native, "", "at::detail::", "", foldHide},
	{native, "", "torch::autograd::generated::", "", foldHide},
	{native, "", "torch::autograd::VariableType::", "", foldHide},
	{native, "", "torch::autograd::ADInplaceOrView::", "", foldHide},
	{native, "", "torch::autograd::THPVariable_", "", foldHide},
	{native, "", "torch::autograd::TypeError_to_NotImplemented_", "", foldHide},
	{native, "", "torch::autograd::dispatch_", "", foldHide},
	{native, "", "torch::autograd::Engine::evaluate_function", "", foldEngine},
	{native, "", "torch::autograd::Engine::", "", foldHide},
	{native, "", "torch::autograd::python::", "", foldHide},
	{native, "", "torch::autograd::Node::", "", foldHide},
	{native, "", "pybind11::", "", foldHide},
	{native, "", "THPEngine_", "", foldHide},
	{native, "libtorch", "", "", foldInner},
	{native, "libc10", "", "", foldInner},
	{native, "", "at::", "", foldInner},
	{native, "", "c10::", "", foldInner},

	// Code that Cython compiled.
	{native, "", "__pyx_", "", foldEntry},
	{native, "", "__Pyx_", "", foldHide},

	// MXNet.
	{python, "", "", "*mxnet/_ctypes/", foldHide},
	{python, "", "", "*mxnet/_ffi/", foldHide},
	{python, "", "*__call__", "*mxnet/gluon/block.py", foldHide},
	{python, "", "*_call_cached_op", "*mxnet/gluon/block.py", foldHide},
	{native, "", "mxnet::storage::", "", foldHide},
	{native, "", "mxnet::StorageImpl::", "", foldHide},
	{native, "", "mxnet::NDArray::CheckAndAlloc", "", foldHide},
	{native, "", "mxnet::engine::", "", foldHide},
	{native, "", "mxnet::op::", "", foldOperator},
	{native, "libmxnet", "", "", foldInner},

	// JAX and TensorFlow.
	{python, "", "", "*jax/_src/traceback_util.py", foldHide},
	{python, "", "", "*jax/_src/pjit.py", foldHide},
	{python, "", "", "*jax/_src/core.py", foldHide},
	{python, "", "", "*jax/_src/interpreters/", foldHide},
	{python, "", "", "*tensorflow/python/util/", foldHide},
	{native, "", "tsl::", "", foldHide},
	{native, "", "stream_executor::", "", foldHide},
	{native, "xla_", "", "", foldInner},
	{native, "libtensorflow", "", "", foldInner},
}

// foldOf finds the rule for a frame; ok=false if there is none.
func foldOf(f *symbol.Frame) (how fold, ok bool) {
	if f.Kind == symbol.Native && gradientNode(f.Function) != "" {
		return FoldNode, true
	}
	library := ""
	if f.Module != "" {
		library = path.Base(f.Module)
	}
	for i := range foldRules {
		r := &foldRules[i]
		if r.kind == f.Kind && strings.HasPrefix(library, r.library) && matches(f.Function, r.function) &&
			matches(f.File, r.file) {
			return r.fold, true
		}
	}
	if inHeaderLibrary(f) {
		return foldEntry, true
	}
	return foldKeep, false
}

func matches(text, pattern string) bool {
	if part, anywhere := strings.CutPrefix(pattern, "*"); anywhere {
		return strings.Contains(text, part)
	}
	return strings.HasPrefix(text, pattern)
}

// operatorName turns the function that PyTorch generates for an operator into the operator's name, "" for others.
func operatorName(function string) string {
	rest, ok := strings.CutPrefix(function, "at::_ops::")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "::")
	return "aten::" + strings.TrimSuffix(name, "_memory_format") // an overload of empty that is not called by this name
}

// gradientNode turns the function that computes a gradient into a name, "" for others.
func gradientNode(function string) string {
	rest, ok := strings.CutPrefix(function, "torch::autograd::")
	if !ok {
		return ""
	}
	name, ok := strings.CutSuffix(strings.TrimPrefix(rest, "generated::"), "::apply")
	if !ok || strings.Contains(name, ":") {
		return ""
	}
	return "autograd: " + name
}

// shortName returns the name of a frame in a folded stack if its function is too detailed, "" to use the function.
func shortName(f *symbol.Frame) string {
	switch {
	case f.Kind != symbol.Native:
		return ""
	case f.Function == "torch::autograd::Engine::evaluate_function":
		return "autograd: engine"
	}
	for _, shorten := range []func(string) string{operatorName, gradientNode, cythonName, lambdaOwner} {
		if name := shorten(f.Function); name != "" {
			return name
		}
	}
	return ""
}

// lambdaOwner names a lambda of MXNet by its enclosing function, "" for others.
func lambdaOwner(function string) string {
	if !strings.HasPrefix(function, "mxnet::") {
		return ""
	}
	owner, _, inside := strings.Cut(function, "::{lambda(")
	if !inside {
		return ""
	}
	name, _, _ := strings.Cut(owner, "(")
	return name
}

// cythonName demangles names of Cython: __pyx_pw_4cupy_5_core_4core_7ndarray_1__new__ is
// cupy._core.core.ndarray.__new__. Each part is preceded by its length, except the last one, which in functions visible
// to Python is preceded by a number. "" for others.
func cythonName(function string) string {
	rest, ok := strings.CutPrefix(function, "__pyx_")
	if !ok {
		return ""
	}
	kind, rest, _ := strings.Cut(rest, "_")
	if kind != "f" && kind != "pw" && kind != "pf" {
		return ""
	}
	var parts []string
	for {
		name := strings.TrimLeft(rest, "0123456789")
		length, err := strconv.Atoi(rest[:len(rest)-len(name)])
		if err != nil || length <= 0 || length >= len(name) || name[length] != '_' || name[:length] == "_" {
			return strings.Join(append(parts, name), ".")
		}
		parts, rest = append(parts, name[:length]), name[length+1:]
	}
}

// foldNoise removes frames that matter only to the libraries' authors. If all would go, the innermost frame stays.
func foldNoise(all []*Frame) []*Frame {
	var shown []*Frame
	for i := 0; i < len(all); {
		end := i + 1
		for end < len(all) && (all[end].Kind == symbol.Python) == (all[i].Kind == symbol.Python) {
			end++
		}
		shown = foldRun(shown, all[i:end])
		i = end
	}
	if len(shown) == 0 {
		return all[:min(1, len(all))]
	}
	return shown
}

// foldRun appends the shown frames of a run of frames that are all Python or all native.
func foldRun(shown, run []*Frame) []*Frame {
	operator, node := bestOf(run, foldOperator, foldNameless), bestOf(run, FoldNode, foldEngine)
	if operator != nil && operator.Fold >= foldInner && len(shown) > 0 {
		operator = nil
	}
	if operator != nil && operator.Fold == foldNameless {
		operator = namedWithin(run, operator)
	}
	for i, f := range run {
		switch f.Fold {
		case foldKeep:
			shown = append(shown, f)
		case foldEntry:
			if entersLibrary(run[i:]) {
				shown = append(shown, f)
			}
		default:
			if f == operator || f == node {
				shown = append(shown, f)
				// a recursive function occurs more than once
				operator, node = unless(operator, f), unless(node, f)
			}
		}
	}
	return shown
}

func unless(f, shown *Frame) *Frame {
	if f == shown {
		return nil
	}
	return f
}

// bestOf returns the innermost frame of the best kind present between first and last, or nil.
func bestOf(run []*Frame, first, last fold) *Frame {
	var best *Frame
	for _, f := range run {
		if f.Fold >= first && f.Fold <= last && (best == nil || f.Fold < best.Fold) {
			best = f
		}
	}
	return best
}

// namedWithin returns the named function that a nameless one of the same library called, even if it is plumbing: a name
// is more useful than an offset. Without one it returns the nameless function.
func namedWithin(run []*Frame, nameless *Frame) *Frame {
	best := nameless
	for _, f := range run {
		if f == nameless {
			break
		}
		if f.Function != "" && f.Module == nameless.Module {
			best = f
		}
	}
	return best
}

// entersLibrary reports whether the next frame that is not hidden is outside of the first one's library.
func entersLibrary(run []*Frame) bool {
	cython := cythonName(run[0].Function) != ""
	for _, f := range run[1:] {
		if f.Fold != foldHide {
			return f.Fold != foldEntry || f.Module != run[0].Module && !(cython && cythonName(f.Function) != "")
		}
	}
	return true
}
