//go:build cgo && linux && (amd64 || arm64)

package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// api is what is used of go-nvml; its mock is another.
type api interface {
	Init() nvml.Return
	Shutdown() nvml.Return
	SystemGetDriverVersion() (string, nvml.Return)
	SystemGetCudaDriverVersion() (int, nvml.Return)
	DeviceGetCount() (int, nvml.Return)
	DeviceGetHandleByIndex(int) (nvml.Device, nvml.Return)
}

// Limits on what the library may return: no machine has more.
const (
	maxDevices   = 1024
	maxInstances = 64
)

// failure describes an error code without calling the library, which may be what is broken.
func failure(ret nvml.Return) error {
	if text, known := failures[ret]; known {
		return errors.New(text)
	}
	return fmt.Errorf("NVML error %d", int(ret))
}

var failures = map[nvml.Return]string{
	nvml.ERROR_UNINITIALIZED:             "not started (NVML error 1)",
	nvml.ERROR_INVALID_ARGUMENT:          "invalid argument (NVML error 2)",
	nvml.ERROR_NOT_SUPPORTED:             "not supported (NVML error 3)",
	nvml.ERROR_NO_PERMISSION:             "no permission (NVML error 4)",
	nvml.ERROR_NOT_FOUND:                 "not found (NVML error 6)",
	nvml.ERROR_FUNCTION_NOT_FOUND:        "the driver is too old for this question (NVML error 13)",
	nvml.ERROR_GPU_IS_LOST:               "the GPU has fallen off the bus: see the kernel's log (NVML error 15)",
	nvml.ERROR_RESET_REQUIRED:            "the GPU needs a reset (NVML error 16)",
	nvml.ERROR_OPERATING_SYSTEM:          "the operating system refused (NVML error 17)",
	nvml.ERROR_IRQ_ISSUE:                 "interrupts do not arrive (NVML error 11)",
	nvml.ERROR_INSUFFICIENT_POWER:        "a power cable is missing (NVML error 8)",
	nvml.ERROR_ARGUMENT_VERSION_MISMATCH: "the driver knows another version of this question (NVML error 25)",
}

// Read queries all devices and their processes. A device that fails is in the snapshot with its problem; an error means
// that there is no snapshot.
func (l *Library) Read() (Snapshot, error) {
	var s Snapshot
	if v, ret := l.api.SystemGetDriverVersion(); ret == nvml.SUCCESS {
		s.Driver = v
	}
	if v, ret := l.api.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		s.CUDA = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	}
	count, ret := l.api.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return s, fmt.Errorf("count devices: %w", failure(ret))
	}
	if count < 0 || count > maxDevices {
		return s, fmt.Errorf("count devices: the library says %d", count)
	}
	for i := range count {
		handle, ret := l.api.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			s.Devices = append(s.Devices, Device{Index: i, Instance: NoInstance,
				Problems: []string{"open: " + failure(ret).Error()}})
			continue
		}
		s.Devices = append(s.Devices, readDevice(handle, i)...)
	}
	return s, nil
}

// readDevice returns a GPU, followed by its MIG instances.
func readDevice(handle nvml.Device, index int) []Device {
	d := Device{Index: index, Instance: NoInstance}
	d.describe(handle)
	d.readUtilization(handle)
	if mode, _, ret := handle.GetMigMode(); ret == nvml.SUCCESS && mode == nvml.DEVICE_MIG_ENABLE {
		d.MIG = true
		instances := d.readInstances(handle)
		return append([]Device{d}, instances...)
	}
	d.readProcesses(handle)
	return []Device{d}
}

// describe reads what GPUs and instances have alike.
func (d *Device) describe(handle nvml.Device) {
	var ret nvml.Return
	if d.Name, ret = handle.GetName(); ret != nvml.SUCCESS {
		d.problem("name", ret)
	}
	if d.UUID, ret = handle.GetUUID(); ret != nvml.SUCCESS {
		d.problem("UUID", ret)
	}
	d.readMemory(handle)
}

// readMemory calls version 2, which reports the driver's reserve separately, and on older drivers version 1.
func (d *Device) readMemory(handle nvml.Device) {
	if m, ret := handle.GetMemoryInfo_v2(); ret == nvml.SUCCESS {
		d.Memory = &Memory{Total: m.Total, Used: m.Used, Free: m.Free, Reserved: m.Reserved}
		return
	}
	m, ret := handle.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		d.problem("memory", ret)
		return
	}
	d.Memory = &Memory{Total: m.Total, Used: m.Used, Free: m.Free}
}

// readUtilization returns nil where there is no figure, which is usual under MIG and virtualisation.
func (d *Device) readUtilization(handle nvml.Device) {
	if u, ret := handle.GetUtilizationRates(); ret == nvml.SUCCESS {
		d.Utilization = &u.Gpu
	}
}

func (d *Device) readInstances(handle nvml.Device) []Device {
	count, ret := handle.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		d.problem("MIG instances", ret)
		return nil
	}
	var list []Device
	for i := range min(max(count, 0), maxInstances) {
		instance, ret := handle.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT {
			continue // a place without an instance
		}
		m := Device{Index: d.Index, Instance: i}
		if ret != nvml.SUCCESS {
			m.problem("open", ret)
		} else {
			m.describe(instance)
			m.readProcesses(instance)
		}
		list = append(list, m)
	}
	return list
}

// readProcesses joins those that compute and those that draw; many do both.
func (d *Device) readProcesses(handle nvml.Device) {
	compute, ret := handle.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		d.problem("processes", ret)
	}
	for _, p := range compute {
		d.process(p).Compute = true
	}
	graphics, ret := handle.GetGraphicsRunningProcesses()
	if ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
		d.problem("graphics processes", ret)
	}
	for _, p := range graphics {
		d.process(p).Graphics = true
	}
	slices.SortFunc(d.Processes, func(a, b Process) int { return cmp.Compare(a.PID, b.PID) })
}

// process returns the entry of a process, made if it is new. Both lists give the same figure for the whole process, so
// it is taken once.
func (d *Device) process(p nvml.ProcessInfo) *Process {
	i := slices.IndexFunc(d.Processes, func(have Process) bool { return have.PID == p.Pid })
	if i < 0 {
		d.Processes = append(d.Processes, Process{PID: p.Pid})
		i = len(d.Processes) - 1
	}
	entry := &d.Processes[i]
	if p.UsedGpuMemory != math.MaxUint64 && (entry.Used == nil || *entry.Used < p.UsedGpuMemory) {
		used := p.UsedGpuMemory
		entry.Used = &used
	}
	return entry
}

func (d *Device) problem(what string, ret nvml.Return) {
	d.Problems = append(d.Problems, what+": "+failure(ret).Error())
}
