package export

import (
	"fmt"
	"slices"
	"sync"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// Paths of a training run.
const (
	script   = "/home/ada/exp/train.py"
	linear   = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"
	module   = "/opt/venv/lib/python3.11/site-packages/torch/nn/modules/module.py"
	adam     = "/opt/venv/lib/python3.11/site-packages/torch/optim/adam.py"
	libtorch = "/opt/venv/lib/python3.11/site-packages/torch/lib/libtorch_cuda.so"
	python   = "/usr/bin/python3.11"
)

func py(function, file string, line int) symbol.Frame {
	return symbol.Frame{Kind: symbol.Python, Function: function, File: file, Line: line}
}

func native(function string, address uint64) symbol.Frame {
	return symbol.Frame{Kind: symbol.Native, Function: function, Module: libtorch, Address: address,
		Start: address &^ 0xfff}
}

// stack takes frames outermost first and returns them innermost first, as the analyzer does.
func stack(frames ...symbol.Frame) []symbol.Frame {
	slices.Reverse(frames)
	return frames
}

// trainingSet is a small training run, folded as a user would.
func trainingSet() *analyzer.StackSet {
	begin := []symbol.Frame{py("<module>", script, 120), py("main", script, 90)}
	at := func(frames ...symbol.Frame) []symbol.Frame { return stack(append(slices.Clone(begin), frames...)...) }
	set := &analyzer.StackSet{
		Process: report.Process{Command: "python3 train.py --layers 12", Exe: python, Started: "2026-02-03T04:05:06Z",
			DurationNS: 8e9},
		Versions: map[string]string{"torch": "2.7.1"}, Level: "framework", Moment: "peak", TimeNS: 1_234_000_000,
		Health: report.Health{Complete: true},
	}
	add := func(frames []symbol.Frame, peak, live, count uint64) {
		set.Rows = append(set.Rows, analyzer.StackRow{Frames: frames, PeakBytes: peak, LiveBytes: live,
			AllocBytes: peak*count + live, AllocCount: count,
			FreeCount: count - count/2})
	}
	const mib = 1 << 20
	forward := py("GPT2.forward", script, 61)
	call := py("Module._call_impl", module, 1747)
	for i, line := range []int{41, 42, 43} {
		block := py("Block.forward", script, line)
		add(at(py("train_step", script, 70), forward, block, call, py("Linear.forward", linear, 125),
			native("at::native::addmm_out_cuda", 0x1234)),
			uint64(300+i*40)*mib+7, 0, 120)
		add(at(py("train_step", script, 70), forward, block, py("gelu", script, 12),
			native("at::native::gelu_out<float>", 0x9000)), uint64(90+i)*mib, 0, 60)
	}
	add(at(py("train_step", script, 70), forward, native("at::native::softmax_cuda_out", 0x5000)), 222*mib, 0, 12)
	add(at(py("train_step", script, 75), py("Adam.step", adam, 220), py("Adam._init_group", adam, 170),
		native("at::native::zeros_like", 0x7000)),
		949*mib, 949*mib, 296)
	add(at(py("build", script, 30), py("Linear.__init__", linear, 104), native("at::native::empty_cuda", 0x6000)),
		474*mib, 474*mib, 148)
	add(stack(native("torch::autograd::Engine::thread_init", 0x100), native("torch::autograd::AddmmBackward0::apply",
		0x200),
		native("at::native::addmm_out_cuda", 0x1234)), 474*mib, 0, 148)
	add(stack(symbol.Frame{Kind: symbol.Native, Module: "/usr/lib/libcublas.so.12", Address: 0x123456,
		Start: 0x123400}), 8*mib, 8*mib, 1)
	add(stack(symbol.Frame{Kind: symbol.JIT, Address: 0x7f0011223344}), 3, 3, 1)
	add(nil, 512, 0, 1)
	return set
}

func trainingOptions(v Value) Options {
	return Options{Value: v, Writer: "memtrace test", Modules: []trace.Module{
		{Start: 0x7f0000000000, End: 0x7f0000100000, Base: 0x7f0000000000, Path: libtorch, BuildID: "c0ffee"},
		{Start: 0x400000, End: 0x900000, Base: 0x400000, Path: python, BuildID: "beef"},
	}}
}

// manyRows is how many stacks manyStacks has: more than a flame graph has boxes.
const manyRows = maxBoxes * 5 / 4

// manyStacks is made once: it is large.
var manyStacks = sync.OnceValue(func() *analyzer.StackSet { return wideSet(manyRows) })

// wideSet has many distinct stacks of 16 frames.
func wideSet(stacks int) *analyzer.StackSet {
	set := &analyzer.StackSet{Level: "driver", Moment: "peak"}
	for i := range stacks {
		var frames []symbol.Frame
		for depth := range 16 {
			frames = append(frames, py(fmt.Sprintf("layer%d", i%(1+depth*depth)), script, depth))
		}
		frames[15] = py(fmt.Sprintf("leaf%d", i), script, i)
		set.Rows = append(set.Rows, analyzer.StackRow{Frames: stack(frames...), PeakBytes: uint64(i%977 + 1),
			AllocCount: 1, AllocBytes: uint64(i)})
	}
	return set
}
