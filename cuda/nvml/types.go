// Package nvml queries NVIDIA's management library for what occupies the devices: the only package that knows go-nvml,
// and not to be linked into the traced process.
//
// The management library is loaded at run time. A machine without one, and a command that was built without cgo, get an
// error from Open and lose nothing else.
package nvml

import "errors"

// Errors of Open that callers distinguish.
var (
	ErrNoLibrary = errors.New(
		"no NVIDIA management library found (libnvidia-ml.so.1): install the NVIDIA driver, or in a container start it with the NVIDIA runtime")
	ErrNotBuilt = errors.New("this build of memtrace has no NVML: build it with cgo (CGO_ENABLED=1)")
)

// Snapshot is what the library reports at one moment. It is a value.
type Snapshot struct {
	Driver  string // version of the driver, "" if unknown
	CUDA    string // highest CUDA version that the driver supports, such as 13.0; "" if unknown
	Devices []Device
}

// NoInstance is the Instance of a whole device.
const NoInstance = -1

// Device is a GPU, or a MIG instance of one, listed after its GPU. Sizes are bytes.
type Device struct {
	Index    int // of the GPU, as nvidia-smi counts
	Instance int // of the MIG instance on its GPU, or NoInstance
	Name     string
	UUID     string // GPU-... or MIG-...; "" if unknown
	MIG      bool   // the GPU is divided: its processes are listed with its instances

	Memory      *Memory   // nil if not reported
	Utilization *uint32   // percent of the last interval in which kernels ran; nil if not reported
	Processes   []Process // by pid

	Problems []string // queries that failed, in words
}

// Memory is how full a device is. Reserved, which neither used nor free includes, is what the driver keeps for itself;
// 0 where the driver counts it as used.
type Memory struct{ Total, Used, Free, Reserved uint64 }

// Process is a process that has a context on a device.
type Process struct {
	PID      uint32
	Used     *uint64 // bytes; nil if not reported, as under WSL and in some containers
	Compute  bool
	Graphics bool
}
