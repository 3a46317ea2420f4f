package callstack

import (
	"testing"

	"memtrace/internal/symbol"
	"memtrace/trace"
)

func TestHeaderLibraries(t *testing.T) {
	j := NewClassifier(trace.Info{"process.cwd": "/home/ada/sim"}, nil)
	for _, test := range []struct {
		file, function string
		user           bool
	}{
		{"/home/ada/sim/src/solve.cpp", "solve", true},
		{"/home/ada/sim/include/solve.hpp", "solve", true}, // a project has such a folder, too
		{"/opt/sim/include/solve.hpp", "solve", true},
		{"/home/ada/thrust/reduce.cu", "reduce", true},
		{"/home/ada/sim/cuda.cu", "cuda::upload", true},
		{"/home/ada/fmt/sim.cpp", "fmtx::upload", true},
		{"", "solve", true},
		{"/usr/include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/usr/local/include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/usr/local/simlib/include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/usr/local/cuda-12.6/targets/x86_64-linux/include/cuda_runtime.h", "cudaMalloc<float>", false},
		{"/opt/nvidia/cuda-13/include/cuda_runtime.h", "cudaMalloc<float>", false},
		{"/venv/lib/python3.11/site-packages/torch/include/ATen/Functions.h", "(anonymous)::empty", false},
		{"/home/ada/miniconda3/envs/sim/include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/home/ada/miniforge3/include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/home/ada/sim/build/_deps/simlib-src/include/pool.hpp", "simlib::pool::grow", false},
		{"/home/ada/sim/vcpkg_installed/x64-linux/include/simlib/pool.hpp", "simlib::pool::grow", false},
		{"/home/ada/cccl/thrust/thrust/device_vector.h",
			"thrust::THRUST_200802_SM_900_NS::device_vector<float>::device_vector", false},
		{"", "rmm::device_buffer::device_buffer", false},
		{"", "cuda::mr::__4::async_resource_ref<...>::allocate_async", false},
		{"", "cuda::std::__4::vector<float>::vector", false},
	} {
		f := symbol.Frame{Kind: symbol.Native, Module: "/home/ada/sim/sim", File: test.file, Function: test.function}
		if got := j.User(f); got != test.user {
			t.Errorf("%s in %q: the program's own %v, want %v", test.function, test.file, got, test.user)
		}
	}
}

// The line that used the library is the site; of the library the function that was called there stays. Where the
// program has no function on the stack, that one is the site.
func TestSiteAboveHeaders(t *testing.T) {
	j := NewClassifier(trace.Info{"process.cwd": "/home/ada/sim"}, nil)
	at := func(file, function string, line int) *Frame {
		return j.frame(symbol.Frame{Kind: symbol.Native, Module: "/home/ada/sim/sim", File: file, Function: function,
			Line: line})
	}
	library := []*Frame{
		at("/rmm/include/rmm/mr/device/pool_memory_resource.hpp", "rmm::mr::pool_memory_resource<...>::do_allocate", 9),
		at("/usr/include/c++/12/bits/vector.h", "std::vector<int>::reserve", 9),
		at("/rmm/include/rmm/device_buffer.hpp", "rmm::device_buffer::device_buffer", 9),
	}
	s := &Stack{Shown: foldNoise(append(library, at("/home/ada/sim/src/solve.cpp", "solve", 41),
		at("/home/ada/sim/src/main.cpp", "main", 7)))}
	if got, want := titles(s.Shown), "rmm::device_buffer::device_buffer, solve, main"; got != want {
		t.Errorf("shown are %q, want %q", got, want)
	}
	if got, want := j.Site(siteOf(s)), "src/solve.cpp:41 solve"; got != want {
		t.Errorf("the site is %q, want %q", got, want)
	}
	s = &Stack{Shown: foldNoise(library)}
	if got, want := j.Site(siteOf(s)), "rmm/device_buffer.hpp:9 rmm::device_buffer::device_buffer"; got != want {
		t.Errorf("without the program the site is %q, want %q", got, want)
	}
}
