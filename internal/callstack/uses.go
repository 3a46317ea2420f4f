package callstack

import (
	"strings"

	"memtrace/internal/symbol"
)

// Autocasts reports whether an operator of a stack ran under torch.autocast, which calls it through a function of its
// own even if used as a with statement.
func Autocasts(all []*Frame) bool {
	for _, f := range all {
		switch {
		case f.Kind != symbol.Python && strings.HasPrefix(f.Function, "at::autocast::"):
			return true
		case f.Kind == symbol.Python && strings.HasSuffix(f.File, "torch/amp/autocast_mode.py"):
			return true
		}
	}
	return false
}

// MultiTensor names the optimizer whose step over many parameters at once makes the memory of a stack, adam of
// _multi_tensor_adam (torch/optim, PyTorch 1.13 to 2.15); "" for other memory.
func MultiTensor(all []*Frame) string {
	for _, f := range all {
		if name, found := strings.CutPrefix(f.Function, "_multi_tensor_"); found && f.Kind == symbol.Python &&
			strings.Contains(f.File, "torch/optim/") {
			return name
		}
	}
	return ""
}

// loaders are the files whose functions read tensors from a checkpoint.
var loaders = []string{"torch/serialization.py", "safetensors/torch.py"}

// LoadsCheckpoint reports whether the memory of a stack is for tensors that are read from a file.
func LoadsCheckpoint(all []*Frame) bool {
	for _, f := range all {
		for _, file := range loaders {
			if f.Kind == symbol.Python && strings.HasSuffix(f.File, file) {
				return true
			}
		}
	}
	return false
}
