package callstack

import (
	"testing"

	"memtrace/internal/symbol"
)

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
