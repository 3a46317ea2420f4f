package callstack

import (
	"testing"

	"memtrace/internal/symbol"
)

// Temporaries of an optimizer's multi-tensor step are told by its function, in PyTorch's folder alone.
func TestMultiTensor(t *testing.T) {
	for _, c := range []struct {
		frame symbol.Frame
		want  string
	}{
		{symbol.Frame{Kind: symbol.Python, Function: "_multi_tensor_adam", File: "/x/torch/optim/adam.py"}, "adam"},
		{symbol.Frame{Kind: symbol.Python, Function: "_single_tensor_adam", File: "/x/torch/optim/adam.py"}, ""},
		{symbol.Frame{Kind: symbol.Python, Function: "_multi_tensor_adam", File: "/x/mine/adam.py"}, ""},
		{symbol.Frame{Function: "_multi_tensor_adam", File: "/x/torch/optim/adam.py"}, ""},
	} {
		all := []*Frame{{Frame: symbol.Frame{Function: "cudaMalloc"}}, {Frame: c.frame}}
		if got := MultiTensor(all); got != c.want {
			t.Errorf("%+v: %q", c.frame, got)
		}
	}
}

// TestUses: what native functions and Python files of a stack show about the program.
func TestUses(t *testing.T) {
	for _, c := range []struct {
		name             string
		frame            symbol.Frame
		autocasts, loads bool
	}{
		{"operator under autocast", symbol.Frame{Function: "at::autocast::WrapFunction_<...>::call"}, true, false},
		{"another operator", symbol.Frame{Function: "at::native::empty_cuda"}, false, false},
		{"decorator of autocast", symbol.Frame{Kind: symbol.Python, Function: "decorate_autocast",
			File: "/x/torch/amp/autocast_mode.py"}, true, false},
		{"torch.load", symbol.Frame{Kind: symbol.Python, Function: "_load", File: "/x/torch/serialization.py"},
			false, true},
		{"safetensors", symbol.Frame{Kind: symbol.Python, Function: "load_file", File: "/x/safetensors/torch.py"},
			false, true},
		{"a file of the program", symbol.Frame{Kind: symbol.Python, Function: "load", File: "/x/mytorch/serialize.py"},
			false, false},
		{"native code of that name", symbol.Frame{Function: "load", File: "/x/torch/serialization.py"}, false, false},
	} {
		all := []*Frame{{Frame: symbol.Frame{Function: "cudaMalloc"}}, {Frame: c.frame}}
		if Autocasts(all) != c.autocasts || LoadsCheckpoint(all) != c.loads {
			t.Errorf("%s: autocast %v, loads %v", c.name, Autocasts(all), LoadsCheckpoint(all))
		}
	}
}
