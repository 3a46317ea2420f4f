package callstack

import (
	"strings"
	"testing"

	"memtrace/analyzer/report"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

func TestOwnGlobs(t *testing.T) {
	info := trace.Info{"process.cwd": "/home/ada/gpt", "python.version": "3.11",
		LibrariesKey: "/opt/libs/accelerate\x00/opt/libs/six.py"}
	for _, test := range []struct {
		own  string // patterns, separated by blanks
		file string
		want bool
	}{
		{"", "/opt/libs/accelerate/utils/operations.py", false},
		{"", "/opt/libs/accelerate_tools/run.py", true},
		{"", "/opt/libs/six.py", false},
		{"", "/opt/libs/train.py", true},
		{"accelerate", "/opt/libs/accelerate/utils/operations.py", true},
		{"transformers", "/venv/lib/python3.11/site-packages/transformers/trainer.py", true},
		{"transformers", "/venv/lib/python3.11/site-packages/transformers_more/trainer.py", false},
		{"transformers/models/llama", "/venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
			true},
		{"transformers/models/llama", "/venv/lib/python3.11/site-packages/transformers/trainer.py", false},
		{"transformers/*/llama", "/venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py",
			true},
		{"*/site-packages/transformers/*", "/venv/lib/python3.11/site-packages/transformers/trainer.py", true},
		{"transformers/*.py", "/venv/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", true},
		{"!vendor", "/home/ada/gpt/vendor/fast.py", false},
		{"!gpt gpt/train.py", "/home/ada/gpt/train.py", true},
		{"gpt/train.py !gpt", "/home/ada/gpt/train.py", false},
		{"a(b", "/home/ada/a(b/x.py", true},
		{"*", "/usr/lib/python3.11/threading.py", true},
		{"*", "<string>", false},
	} {
		j := NewClassifier(info, strings.Fields(test.own))
		if got := j.User(symbol.Frame{Kind: symbol.Python, File: test.file}); got != test.want {
			t.Errorf("--own %q: %s is the program's own: %v, want %v", test.own, test.file, got, test.want)
		}
	}
	j := NewClassifier(info, nil)
	if got := j.Place("/opt/libs/accelerate/utils/operations.py"); got != "accelerate/utils/operations.py" {
		t.Errorf("a library's file stands at %q", got)
	}
	native := NewClassifier(pythonInfo, []string{"kernels.so"})
	if !native.User(symbol.Frame{Kind: symbol.Native, Module: "/home/ada/gpt/kernels.so", Function: "fill"}) {
		t.Error("an extension that --own names is a library's")
	}
}

func TestCheckOwn(t *testing.T) {
	for _, bad := range []string{"", "!", "/", "!/"} {
		if err := CheckOwn([]string{"good", bad}); err == nil ||
			!strings.Contains(err.Error(), "name a package or a path") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := CheckOwn([]string{"accelerate", "!*/vendor/*.py"}); err != nil {
		t.Error(err)
	}
}

// TestInnerFrame: frames of the framework, of the interpreter and of memtrace are skipped, those of other libraries are
// not.
func TestInnerFrame(t *testing.T) {
	const packages = "/venv/lib/python3.11/site-packages/"
	for _, test := range []struct{ stack, want string }{
		{packages + "torch/nn/functional.py softmax\n" + packages +
			"transformers/modeling_llama.py eager\n/home/ada/gpt/train.py main", "eager"},
		{"libtorch_cpu.so at::_ops::_softmax::call\n" + packages +
			"torch/nn/modules/activation.py Softmax.forward\n/home/ada/gpt/train.py main", "main"},
		{"/usr/lib/python3.11/contextlib.py inner\n/home/ada/tools/memtrace/_tag.py __enter__\n" + packages +
			"accelerate/optimizer.py step", "step"},
		{packages + "jax/_src/api.py jit\n" + packages + "mxnet/gluon/block.py forward\n" + packages +
			"numpy/core.py array", ""},
		{"libcudart.so cudaMalloc", ""},
	} {
		j := NewClassifier(pythonInfo, nil)
		got := ""
		if f, _, ok := j.Inner(&Stack{All: stackOf(j, test.stack)}); ok {
			got = f.Title()
		}
		if got != test.want {
			t.Errorf("%s\nis %q, want %q", test.stack, got, test.want)
		}
	}
}

func TestOperatorIn(t *testing.T) {
	for _, test := range []struct{ stack, want string }{
		{addmmStack, "aten::addmm"},
		{
			"libtorch_cpu.so at::_ops::empty_memory_format::call\nlibtorch_cpu.so at::_ops::_softmax::call\n/home/ada/gpt/train.py main", "aten::_softmax"},
		{"libtorch_cpu.so at::_ops::empty_memory_format::call\n/home/ada/gpt/train.py main", "aten::empty"},
		{
			"libtorch_cpu.so at::_ops::mm::call\nlibtorch_cpu.so torch::autograd::generated::MmBackward0::apply\nlibtorch_cpu.so torch::autograd::Engine::evaluate_function", "autograd: MmBackward0"},
		{
			"libtorch_cpu.so at::_ops::mul::call\nlibtorch_python.so torch::autograd::PyNode::apply\nlibtorch_cpu.so torch::autograd::Engine::evaluate_function", "aten::mul"},
		{
			"libtorch_cpu.so at::_ops::mm::call\n/home/ada/gpt/train.py Checkpoint.backward\nlibtorch_python.so torch::autograd::PyNode::apply", "aten::mm"},
		{
			"libmxnet.so mxnet::op::FullyConnectedCompute<mshadow::gpu>(nnvm::NodeAttrs const&)\n/home/ada/gpt/train.py main", "mxnet::op::FullyConnectedCompute"},
		{"/home/ada/gpt/train.py main\nlibtorch_cpu.so at::_ops::mm::call", report.NoOperator},
		{"libcudart.so cudaMalloc\n/home/ada/gpt/train.py main", report.NoOperator},
		{"", report.NoOperator},
	} {
		if got := OperatorIn(stackOf(NewClassifier(pythonInfo, nil), test.stack)); got != test.want {
			t.Errorf("%s\nis of %q, want %q", test.stack, got, test.want)
		}
	}
}
