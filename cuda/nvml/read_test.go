//go:build cgo && linux && (amd64 || arm64)

package nvml

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// fakeDevice answers as a GPU does on which nothing runs; a test replaces the answers that it is about.
func fakeDevice(uuid string) *mock.Device {
	return &mock.Device{
		GetNameFunc: func() (string, nvml.Return) { return "Mock GPU", nvml.SUCCESS },
		GetUUIDFunc: func() (string, nvml.Return) { return uuid, nvml.SUCCESS },
		GetMemoryInfo_v2Func: func() (nvml.Memory_v2, nvml.Return) {
			return nvml.Memory_v2{Total: 100, Reserved: 10, Free: 60, Used: 30}, nvml.SUCCESS
		},
		GetUtilizationRatesFunc: func() (nvml.Utilization, nvml.Return) {
			return nvml.Utilization{Gpu: 42}, nvml.SUCCESS
		},
		GetMigModeFunc: func() (int, int, nvml.Return) { return 0, 0, nvml.ERROR_NOT_SUPPORTED },
		GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return nil, nvml.SUCCESS
		},
		GetGraphicsRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) {
			return nil, nvml.SUCCESS
		},
	}
}

func fakeLibrary(devices ...nvml.Device) *Library {
	return &Library{api: &mock.Interface{
		SystemGetDriverVersionFunc:     func() (string, nvml.Return) { return "580.65", nvml.SUCCESS },
		SystemGetCudaDriverVersionFunc: func() (int, nvml.Return) { return 12040, nvml.SUCCESS },
		DeviceGetCountFunc:             func() (int, nvml.Return) { return len(devices), nvml.SUCCESS },
		DeviceGetHandleByIndexFunc: func(i int) (nvml.Device, nvml.Return) {
			if devices[i] == nil {
				return nil, nvml.ERROR_GPU_IS_LOST
			}
			return devices[i], nvml.SUCCESS
		},
	}}
}

func read(t *testing.T, l *Library) Snapshot {
	t.Helper()
	s, err := l.Read()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func processes(list ...nvml.ProcessInfo) func() ([]nvml.ProcessInfo, nvml.Return) {
	return func() ([]nvml.ProcessInfo, nvml.Return) { return list, nvml.SUCCESS }
}

func TestReadDevice(t *testing.T) {
	s := read(t, fakeLibrary(fakeDevice("GPU-1")))
	if s.Driver != "580.65" || s.CUDA != "12.4" || len(s.Devices) != 1 {
		t.Fatalf("%+v", s)
	}
	d := s.Devices[0]
	if d.Index != 0 || d.Instance != NoInstance || d.Name != "Mock GPU" || d.UUID != "GPU-1" || d.MIG ||
		len(d.Problems) != 0 {
		t.Errorf("%+v", d)
	}
	if *d.Memory != (Memory{Total: 100, Used: 30, Free: 60, Reserved: 10}) || *d.Utilization != 42 {
		t.Errorf("memory %+v, utilization %d", *d.Memory, *d.Utilization)
	}
}

// A driver older than version 2 of the query still reports its memory.
func TestMemoryOfOldDriver(t *testing.T) {
	device := fakeDevice("GPU-1")
	device.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{}, nvml.ERROR_FUNCTION_NOT_FOUND
	}
	device.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) {
		return nvml.Memory{Total: 100, Free: 60, Used: 40}, nvml.SUCCESS
	}
	if d := read(t, fakeLibrary(device)).Devices[0]; d.Memory == nil ||
		*d.Memory != (Memory{Total: 100, Used: 40, Free: 60}) || len(d.Problems) != 0 {
		t.Errorf("%+v", d)
	}
	device.GetMemoryInfoFunc = func() (nvml.Memory, nvml.Return) { return nvml.Memory{}, nvml.ERROR_GPU_IS_LOST }
	if d := read(t, fakeLibrary(device)).Devices[0]; d.Memory != nil || len(d.Problems) != 1 ||
		!strings.Contains(d.Problems[0], "fallen off the bus") {
		t.Errorf("%+v", d)
	}
}

// A process that computes and draws is in both lists with the same figure, which counts once.
func TestProcessInBothLists(t *testing.T) {
	device := fakeDevice("GPU-1")
	device.GetComputeRunningProcessesFunc = processes(nvml.ProcessInfo{Pid: 20, UsedGpuMemory: 7},
		nvml.ProcessInfo{Pid: 10, UsedGpuMemory: 5})
	device.GetGraphicsRunningProcessesFunc = processes(nvml.ProcessInfo{Pid: 20, UsedGpuMemory: 7},
		nvml.ProcessInfo{Pid: 30, UsedGpuMemory: 1})
	var got []string
	for _, p := range read(t, fakeLibrary(device)).Devices[0].Processes {
		got = append(got, fmt.Sprint(p.PID, *p.Used, p.Compute, p.Graphics))
	}
	if want := []string{"10 5 true false", "20 7 true true", "30 1 false true"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Under WSL and in some containers the library knows the processes but not what they use: that is not zero bytes and
// not 16 EiB.
func TestProcessFigureNotReported(t *testing.T) {
	device := fakeDevice("GPU-1")
	device.GetComputeRunningProcessesFunc = processes(nvml.ProcessInfo{Pid: 10, UsedGpuMemory: math.MaxUint64})
	list := read(t, fakeLibrary(device)).Devices[0].Processes
	if len(list) != 1 || list[0].Used != nil {
		t.Errorf("%+v", list)
	}
	device.GetGraphicsRunningProcessesFunc = processes(nvml.ProcessInfo{Pid: 10, UsedGpuMemory: 9})
	list = read(t, fakeLibrary(device)).Devices[0].Processes
	if len(list) != 1 || list[0].Used == nil || *list[0].Used != 9 {
		t.Errorf("a figure from the other list is lost: %+v", list)
	}
}

// A divided GPU is followed by its instances, each with its own memory and processes; the GPU itself does not list a
// process a second time.
func TestMIG(t *testing.T) {
	instance := fakeDevice("MIG-1")
	instance.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
		return nvml.Memory_v2{Total: 20, Free: 15, Used: 5}, nvml.SUCCESS
	}
	instance.GetComputeRunningProcessesFunc = processes(nvml.ProcessInfo{Pid: 10, UsedGpuMemory: 5})
	device := fakeDevice("GPU-1")
	device.GetMigModeFunc = func() (int, int, nvml.Return) {
		return nvml.DEVICE_MIG_ENABLE, nvml.DEVICE_MIG_ENABLE, nvml.SUCCESS
	}
	device.GetUtilizationRatesFunc = func() (nvml.Utilization, nvml.Return) {
		return nvml.Utilization{}, nvml.ERROR_NOT_SUPPORTED
	}
	device.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 3, nvml.SUCCESS }
	device.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		switch i {
		case 0:
			return nil, nvml.ERROR_NOT_FOUND
		case 1:
			return instance, nvml.SUCCESS
		}
		return nil, nvml.ERROR_NO_PERMISSION
	}
	device.GetComputeRunningProcessesFunc = processes(nvml.ProcessInfo{Pid: 10, UsedGpuMemory: 5})
	list := read(t, fakeLibrary(device, fakeDevice("GPU-2"))).Devices
	if len(list) != 4 {
		t.Fatalf("%d rows: %+v", len(list), list)
	}
	whole, part, closed, next := list[0], list[1], list[2], list[3]
	if !whole.MIG || whole.Instance != NoInstance || len(whole.Processes) != 0 || whole.Utilization != nil {
		t.Errorf("GPU: %+v", whole)
	}
	if part.Index != 0 || part.Instance != 1 || part.UUID != "MIG-1" || part.Memory.Used != 5 ||
		len(part.Processes) != 1 || part.Processes[0].PID != 10 {
		t.Errorf("instance: %+v", part)
	}
	if closed.Instance != 2 || len(closed.Problems) != 1 || !strings.Contains(closed.Problems[0], "permission") {
		t.Errorf("instance without permission: %+v", closed)
	}
	if next.Index != 1 || next.Instance != NoInstance || next.UUID != "GPU-2" {
		t.Errorf("next GPU: %+v", next)
	}
}

// One lost GPU does not hide the others.
func TestLostDevice(t *testing.T) {
	list := read(t, fakeLibrary(nil, fakeDevice("GPU-2"))).Devices
	if len(list) != 2 || len(list[0].Problems) != 1 || list[0].Memory != nil || list[1].UUID != "GPU-2" {
		t.Errorf("%+v", list)
	}
}

func TestCountFails(t *testing.T) {
	l := fakeLibrary()
	l.api.(*mock.Interface).DeviceGetCountFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_UNKNOWN }
	if _, err := l.Read(); err == nil || err.Error() != "count devices: NVML error 999" {
		t.Errorf("error %v", err)
	}
	l.api.(*mock.Interface).DeviceGetCountFunc = func() (int, nvml.Return) { return 1 << 30, nvml.SUCCESS }
	if _, err := l.Read(); err == nil {
		t.Error("a billion devices are believed")
	}
}

func TestOpenErrors(t *testing.T) {
	for ret, want := range map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "no NVIDIA management library found (libnvidia-ml.so.1): install",
		nvml.ERROR_DRIVER_NOT_LOADED:       "driver is not loaded: load",
		nvml.ERROR_NO_PERMISSION:           "/dev/nvidiactl",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "reboot",
		nvml.ERROR_UNKNOWN:                 "NVML error 999",
	} {
		if err := openError(ret); !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q in it", int(ret), err, want)
		}
	}
}
