package callstack

import (
	"strings"
	"testing"

	"memtrace/internal/symbol"
	"memtrace/trace"
)

var pythonInfo = trace.Info{"process.cwd": "/home/ada/gpt", "python.version": "3.11",
	"process.argv": "python3\x00train.py"}

// stackOf makes a stack from lines: "library function", "file:function" for Python, innermost first.
func stackOf(j Classifier, text string) []*Frame {
	var frames []*Frame
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		var f symbol.Frame
		if file, function, isPython := strings.Cut(line, ".py "); isPython {
			f = symbol.Frame{Kind: symbol.Python, File: file + ".py", Function: function, Line: 7}
		} else {
			module, function, _ := strings.Cut(line, " ")
			f = symbol.Frame{Kind: symbol.Native, Module: "/venv/lib/python3.11/site-packages/torch/lib/" + module,
				Function: function, Address: 0x1234}
			if module[0] == '/' {
				f.Module = module
			}
			if function == "_PyEval_EvalFrameDefault" {
				f.Kind = symbol.Interpreter
			}
		}
		frames = append(frames, j.frame(f))
	}
	return frames
}

func titles(frames []*Frame) string {
	var list []string
	for _, f := range frames {
		list = append(list, f.Title())
	}
	return strings.Join(list, ", ")
}

// The stacks are those of real programs.
const (
	addmmStack = `libc10_cuda.so c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc
		libc10_cuda.so c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::allocate
		libtorch_cpu.so c10::StorageImpl::StorageImpl
		libtorch_cpu.so at::detail::empty_generic
		libtorch_cuda.so at::detail::empty_cuda
		libtorch_cuda.so at::(anonymous namespace)::create_out
		libtorch_cpu.so at::meta::structured_addmm::meta
		libtorch_cuda.so at::(anonymous namespace)::wrapper_CUDA_addmm
		libtorch_cuda.so c10::impl::wrap_kernel_functor_unboxed_<...>::call
		libtorch_cpu.so at::_ops::addmm::redispatch
		libtorch_cpu.so torch::autograd::VariableType::(anonymous namespace)::addmm
		libtorch_cpu.so at::_ops::addmm::call
		libtorch_cpu.so at::native::linear
		libtorch_cpu.so at::_ops::linear::call
		libtorch_python.so torch::autograd::THPVariable_linear
		/usr/lib/libpython3.11.so.1.0 cfunction_call
		/usr/lib/libpython3.11.so.1.0 _PyObject_MakeTpCall
		/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py Linear.forward
		/venv/lib/python3.11/site-packages/torch/nn/modules/module.py Module._call_impl
		/venv/lib/python3.11/site-packages/torch/nn/modules/module.py Module._wrapped_call_impl
		/home/ada/gpt/train.py Block.forward
		/venv/lib/python3.11/site-packages/torch/nn/modules/module.py Module._call_impl
		/venv/lib/python3.11/site-packages/torch/nn/modules/module.py Module._wrapped_call_impl
		/home/ada/gpt/train.py main
		/home/ada/gpt/train.py <module>`
	cloneStack = `libc10_cuda.so c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc
		libtorch_cuda.so at::native::empty_cuda
		libtorch_cuda.so at::(anonymous namespace)::wrapper_CUDA_memory_format_empty
		libtorch_cpu.so at::_ops::empty_memory_format::redispatch
		libtorch_cpu.so at::_ops::empty_memory_format::call
		libtorch_cpu.so at::native::empty_like
		libtorch_cpu.so at::_ops::empty_like::call
		libtorch_cpu.so at::native::clone
		libtorch_cpu.so at::_ops::clone::redispatch
		libtorch_cpu.so at::_ops::clone::call
		libtorch_cpu.so at::native::reshape_symint
		libtorch_cpu.so at::_ops::reshape::call
		libtorch_python.so torch::autograd::THPVariable_reshape
		/home/ada/gpt/train.py Attention.forward`
	gradientStack = `libtorch_cuda.so at::(anonymous namespace)::create_out
		libtorch_cuda.so at::(anonymous namespace)::wrapper_CUDA_mm
		libtorch_cpu.so at::_ops::mm::call
		libtorch_cpu.so torch::autograd::generated::details::mm_mat2_backward
		libtorch_cpu.so torch::autograd::generated::MmBackward0_apply_functional
		libtorch_cpu.so torch::autograd::generated::MmBackward0::apply
		libtorch_cpu.so torch::autograd::Node::operator()
		libtorch_cpu.so torch::autograd::Engine::evaluate_function
		libtorch_cpu.so torch::autograd::Engine::thread_main
		libtorch_python.so torch::autograd::python::PythonEngine::thread_init
		/usr/lib/libstdc++.so.6 execute_native_thread_routine
		/usr/lib/libc.so.6 start_thread
		/usr/lib/libc.so.6 __clone3`
	reduceStack = `libtorch_cpu.so at::_ops::sum_dim_IntList::call
		libtorch_cpu.so at::_sum_to<...>
		libtorch_cpu.so torch::autograd::InputMetadata::reduce_grad
		libtorch_cpu.so torch::autograd::Engine::evaluate_function
		libtorch_cpu.so torch::autograd::Engine::thread_main`
	emptyStack = `libc10_cuda.so c10::cuda::CUDACachingAllocator::Native::DeviceCachingAllocator::malloc
		libtorch_cuda.so at::native::empty_cuda
		libtorch_cpu.so at::_ops::empty_memory_format::call
		/home/ada/gpt/train.py main`
	blasStack = `/usr/lib/libcublas.so.12
		/usr/lib/libcublas.so.12
		/usr/lib/libcublas.so.12 cublasCreate_v2
		libtorch_cuda.so at::cuda::getCurrentCUDABlasHandle
		libtorch_cpu.so at::_ops::addmm::call
		/home/ada/gpt/train.py main`
	mxnetStack = `libmxnet.so mxnet::storage::GPUPooledStorageManager::Alloc
		libmxnet.so mxnet::StorageImpl::Alloc
		libmxnet.so mxnet::Resource::get_space_internal
		libmxnet.so mxnet::op::AddBiasGrad<float>
		libmxnet.so mxnet::op::FCBackward<mshadow::gpu, float>
		libmxnet.so mxnet::engine::ThreadedEngine::ExecuteOprBlock
		libmxnet.so std::_Function_handler<...>::_M_invoke`
	mxnetNameless = `libmxnet.so mxnet::storage::GPUPooledStorageManager::Alloc
		libmxnet.so
		libmxnet.so mxnet::imperative::PushFCompute
		libmxnet.so mxnet::engine::ThreadedEngine::ExecuteOprBlock`
	mxnetLambda = `libmxnet.so mxnet::storage::GPUPooledStorageManager::Alloc
		libmxnet.so
		libmxnet.so mxnet::imperative::PushFCompute()::{lambda(mxnet::RunContext)#1}::operator()
		libmxnet.so mxnet::engine::ThreadedEngine::ExecuteOprBlock`
	mxnetInside = `libmxnet.so mxnet::storage::GPUPooledStorageManager::Alloc
		libmxnet.so mxnet::NDArray::CheckAndAlloc
		libmxnet.so
		libmxnet.so
		libmxnet.so mxnet::engine::ThreadedEngine::ExecuteOprBlock`
	cupyStack = `runtime.so __pyx_f_13cupy_backends_4cuda_3api_7runtime_malloc
		memory.so __pyx_f_4cupy_4cuda_6memory_alloc
		core.so __Pyx_PyObject_Call
		core.so __pyx_pw_4cupy_5_core_4core_7ndarray_1__new__
		/usr/lib/libpython3.11.so.1.0 type_call
		/venv/lib/python3.11/site-packages/cupy/_creation/basic.py zeros
		/home/ada/gpt/train.py main`
	frozenStack = `/usr/lib/libpython3.11.so.1.0 builtin_exec
		/usr/lib/libpython3.11.so.1.0 _PyEval_EvalFrameDefault`
)

func TestFoldNoise(t *testing.T) {
	for _, test := range []struct{ name, stack, shown, site string }{
		{"a layer", addmmStack, "aten::addmm, Linear.forward, Block.forward, main, <module>",
			"train.py:7 Block.forward"},
		{"an operator that takes its memory from another one", cloneStack, "aten::clone, Attention.forward",
			"train.py:7 Attention.forward"},
		{"a gradient", gradientStack, "aten::mm, autograd: MmBackward0", "autograd: MmBackward0"},
		{"between two gradients", reduceStack, "aten::sum_dim_IntList, autograd: engine", "autograd: engine"},
		{"memory asked for outright", emptyStack, "aten::empty, main", "train.py:7 main"},
		{"a library called by an operator", blasStack, "cublasCreate_v2, aten::addmm, main", "train.py:7 main"},
		{"an engine's thread", mxnetStack, "mxnet::op::AddBiasGrad<float>",
			"mxnet::op::AddBiasGrad<float> (libmxnet.so)"},
		{"names before offsets", mxnetNameless, "mxnet::imperative::PushFCompute",
			"mxnet::imperative::PushFCompute (libmxnet.so)"},
		{"a lambda", mxnetLambda, "mxnet::imperative::PushFCompute", "mxnet::imperative::PushFCompute"},
		{"names within offsets", mxnetInside, "mxnet::NDArray::CheckAndAlloc",
			"mxnet::NDArray::CheckAndAlloc (libmxnet.so)"},
		{"Cython", cupyStack, "cupy._core.core.ndarray.__new__, zeros, main", "train.py:7 main"},
		{"nothing but noise", frozenStack, "builtin_exec", "builtin_exec (libpython3.11.so.1.0)"},
	} {
		j := NewClassifier(pythonInfo, nil)
		s := &Stack{All: stackOf(j, test.stack)}
		s.Shown = foldNoise(s.All)
		if got := titles(s.Shown); got != test.shown {
			t.Errorf("%s: %s, want %s", test.name, got, test.shown)
		}
		if got := j.Site(siteOf(s)); got != test.site {
			t.Errorf("%s: at %s, want %s", test.name, got, test.site)
		}
	}
}

func TestSourceFile(t *testing.T) {
	for _, test := range []struct{ stack, want string }{
		{addmmStack, "train.py"},
		{gradientStack, "autograd"},
		{reduceStack, "autograd"},
		{mxnetLambda, "libmxnet.so"},
		{frozenStack, "libpython3.11.so.1.0"},
	} {
		j := NewClassifier(pythonInfo, nil)
		all := stackOf(j, test.stack)
		if got := j.SourceFile(siteOf(&Stack{All: all, Shown: foldNoise(all)})); got != test.want {
			t.Errorf("%s: %s, want %s", titles(all[:1]), got, test.want)
		}
	}
}

// TestFoldNeverEmpties: folding any part of a real stack leaves at least one frame, and keeps the order.
func TestFoldNeverEmpties(t *testing.T) {
	j := NewClassifier(pythonInfo, nil)
	for _, stack := range []string{addmmStack, cloneStack, gradientStack, reduceStack, emptyStack, blasStack,
		mxnetStack, mxnetNameless, mxnetLambda, mxnetInside, cupyStack,
		frozenStack} {
		all := stackOf(j, stack)
		for from := range all {
			for to := from + 1; to <= len(all); to++ {
				shown := foldNoise(all[from:to])
				next := from
				for _, f := range shown {
					for next < to && all[next] != f {
						next++
					}
				}
				if len(shown) == 0 || next >= to {
					t.Fatalf("%s became %s", titles(all[from:to]), titles(shown))
				}
			}
		}
	}
	if foldNoise(nil) != nil {
		t.Error("nothing became something")
	}
}

// TestNativePrograms: without Python, the program's own libraries are user code, and system libraries are folded to the
// function that was called.
func TestNativePrograms(t *testing.T) {
	j := NewClassifier(trace.Info{"process.cwd": "/home/ada/sim"}, nil)
	s := &Stack{All: stackOf(j, `/usr/local/cuda-12.4/lib64/libcudart.so.12
		/usr/local/cuda-12.4/lib64/libcudart.so.12 cudaMalloc
		/usr/lib/x86_64-linux-gnu/libfabric.so.1 inner
		/usr/lib/x86_64-linux-gnu/libfabric.so.1 fi_open
		/home/ada/sim/libfield.so field::grow
		/home/ada/sim/sim
		/usr/lib/x86_64-linux-gnu/libc.so.6 __libc_start_main
		/home/ada/sim/sim _start`)}
	s.Shown = foldNoise(s.All)
	if got, want := titles(s.Shown), "cudaMalloc, fi_open, field::grow, sim+0x1234"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := j.Site(siteOf(s)), "field::grow (libfield.so)"; got != want {
		t.Errorf("at %s, want %s", got, want)
	}
}

func TestCythonNames(t *testing.T) {
	for name, want := range map[string]string{
		"__pyx_pw_4cupy_5_core_4core_7ndarray_1__new__":         "cupy._core.core.ndarray.__new__",
		"__pyx_f_13cupy_backends_4cuda_3api_7runtime_malloc":    "cupy_backends.cuda.api.runtime.malloc",
		"__pyx_pw_4cupy_5_core_4core_9array":                    "cupy._core.core.array",
		"__pyx_f_4cupy_4cuda_6memory_10MemoryPool__alloc_fresh": "cupy.cuda.memory.MemoryPool._alloc_fresh",
		"__pyx_f_99cut":  "cut",
		"__pyx_f_":       "",
		"__pyx_tp_new_x": "",
		"pyx_f_4cupy_x":  "",
		"":               "",
	} {
		if got := cythonName(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}
