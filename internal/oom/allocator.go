package oom

import (
	"strings"

	"memtrace/trace"
)

// AllocatorSettings returns PyTorch's allocator settings without spaces. Newer versions read the second name.
func AllocatorSettings(info trace.Info) string {
	return strings.ReplaceAll(info["env.PYTORCH_CUDA_ALLOC_CONF"]+","+info["env.PYTORCH_ALLOC_CONF"], " ", "")
}
