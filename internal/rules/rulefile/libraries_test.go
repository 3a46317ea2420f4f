package rulefile

import (
	"testing"

	"memtrace/internal/rules"
)

// TestLibraries applies the preset to stacks as in traces: file names of the vendor's and the frameworks' packages,
// functions as in their symbol tables.
func TestLibraries(t *testing.T) {
	const site = "/v/lib/python3.11/site-packages/"
	native := func(function, library string) *rules.Frame {
		return &rules.Frame{Functions: []string{function}, Library: library}
	}
	python := func(function, file string) *rules.Frame {
		return &rules.Frame{Functions: []string{function}, File: file}
	}
	mine := python("main", "/home/me/train.py")
	for _, test := range []struct {
		want, library string
		frames        []*rules.Frame
	}{
		{"NCCL", "libnccl.so.2", []*rules.Frame{native("ncclCudaMallocAsync", "libnccl.so.2"),
			native("c10d::ProcessGroupNCCL::allreduce", "libtorch_cuda.so"), mine}},
		{"NCCL", "train", []*rules.Frame{native("ncclCommInitRank", "train")}}, // linked statically
		{"NVSHMEM", "libnvshmem_host.so.3", nil},
		{"cuBLAS", "libcublasLt.so.12", []*rules.Frame{native("", "libcublasLt.so.12"),
			native("at::cuda::blas::gemm<float>", "libtorch_cuda.so"), mine}},
		{"cuBLAS", "libc10_cuda.so", []*rules.Frame{native("at::cuda::getCurrentCUDABlasHandle()", "libtorch_cuda.so"),
			native("at::native::addmm_out_cuda_impl", "libtorch_cuda.so")}},
		{"cuDNN", "libcudnn_engines_precompiled.so.9", nil},
		{"cuDNN", "libcudnn.so.8", []*rules.Frame{native("cudnnDropoutGetStatesSize", "libcudnn.so.8")}},
		{"cuFFT", "libcufft.so.11", nil},
		{"cuSPARSE", "libcusparseLt.so.0", nil},
		{"cuSPARSE", "libcusparse.so.12", nil},
		{"cuSOLVER", "libcusolver.so.11", nil},
		{"cuRAND", "libcurand.so.10", nil},
		{"cuTENSOR", "libcutensor.so.2", nil},
		{"nvJPEG and NPP", "libnvjpeg.so.12", nil},
		{"TensorRT", "libnvinfer.so.10", nil},
		{"CUPTI", "libcupti.so.12", nil},
		{"Triton, tuning", "libc10_cuda.so", []*rules.Frame{native("aten::empty", ""),
			python("InductorBenchmarker.benchmark_gpu", site+"torch/_inductor/runtime/benchmarking.py"), mine}},
		{"Triton, tuning", "libc10_cuda.so", []*rules.Frame{python("do_bench", site+"triton/testing.py"), mine}},
		{"Triton", "cuda_utils.cpython-311-x86_64-linux-gnu.so", nil},
		{"Triton", "libc10_cuda.so", []*rules.Frame{python("JITFunction.run", site+"triton/runtime/jit.py"), mine}},
		{"cuDF", "librmm.so", []*rules.Frame{native("rmm::mr::cuda_memory_resource::do_allocate", "librmm.so"),
			native("cudf::io::read_parquet", "libcudf.so")}},
		{"RMM", "librmm.so", nil},
		{"RMM", "solver",
			[]*rules.Frame{native("rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>::expand_pool",
				"solver")}},
		{"RMM", "_memory_resource.abi3.so",
			[]*rules.Frame{python("rmm.pylibrmm.device_buffer.DeviceBuffer.__cinit__", site+
				"rmm/pylibrmm/device_buffer.pyx"), mine}},
		{"CuPy", "runtime.cpython-311-x86_64-linux-gnu.so",
			[]*rules.Frame{python("cupy._core.core.ndarray.__new__", "cupy/_core/core.pyx"), mine}},
		{"CuPy", "runtime.cpython-311-x86_64-linux-gnu.so",
			[]*rules.Frame{python("zeros", site+"cupy/_creation/basic.py"), mine}},
		{"Numba", "cydriver.cpython-311-x86_64-linux-gnu.so",
			[]*rules.Frame{python("NumbaCUDAMemoryManager.memalloc.<locals>.allocator", site+
				"numba_cuda/numba/cuda/cudadrv/driver.py"), mine}},
		{"Numba", "", []*rules.Frame{python("HostOnlyCUDAMemoryManager.memhostalloc",
			site+"numba/cuda/cudadrv/driver.py"), mine}},
		{"JAX and XLA", "xla_cuda_plugin.so", nil},
		{"JAX and XLA", "xla_extension.so", nil}, // before there was a plugin
		{"JAX and XLA", "", []*rules.Frame{python("batched_device_put", site+"jax/_src/interpreters/pxla.py"), mine}},
		{"TensorFlow", "libtensorflow_cc.so.2",
			[]*rules.Frame{native("tsl::BFCAllocator::Extend", "libtensorflow_framework.so.2")}},
		{"JAX and XLA", "server", []*rules.Frame{native("xla::se_gpu::PjRtStreamExecutorClient", "server")}},
		{"MXNet", "libmxnet.so", nil},
		{"ONNX Runtime", "libonnxruntime_providers_cuda.so", nil},
		{"ggml", "libggml-cuda.so", nil},
		{"Faiss", "_swigfaiss.so", nil},
		{"PyTorch", "libc10_cuda.so", []*rules.Frame{native("aten::mm", ""), mine}},
		// The names of a program's own folders have no effect.
		{"PyTorch", "libc10_cuda.so", []*rules.Frame{native("aten::mm", ""),
			python("main", "/home/me/jax/rmm/cupy/numba/triton/train.py")}},
		{"app, load", "app", []*rules.Frame{native("load", "app"), native("main", "app")}},
	} {
		subject := rules.Subject{Level: "driver", Library: test.library, Frames: test.frames}
		if len(test.frames) > 0 {
			subject.Site = test.frames[0]
		}
		if got := category(preset(t, "libraries"), subject); got != test.want {
			t.Errorf("%s, called by %v, is %s, want %s", test.library, test.frames, got, test.want)
		}
	}
}
