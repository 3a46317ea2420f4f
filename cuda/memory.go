package cuda

import "slices"

// MemoryKind is the sort of memory of an allocation. Kinds are never added up blindly: only the kinds for which
// OccupiesDevice is true share a device's physical memory. Numbers are part of the trace format: append only.
type MemoryKind uint8

// The memory kinds.
const (
	MemoryUnknown    MemoryKind = 0
	MemoryDevice     MemoryKind = 1 // cuMemAlloc and its pitched sister
	MemoryManaged    MemoryKind = 2 // cuMemAllocManaged: pages move between host and device
	MemoryHost       MemoryKind = 3 // pinned host memory the driver allocated
	MemoryRegistered MemoryKind = 4 // host memory of the program that was pinned in place
	MemoryAsync      MemoryKind = 5 // stream-ordered, cut from a driver memory pool
	MemoryVMM        MemoryKind = 6 // physical memory of a cuMemCreate handle; the address is the handle
	MemoryArray      MemoryKind = 7 // arrays and mipmapped arrays; sizes are estimates
	MemoryForeign    MemoryKind = 8 // opened from another process or another API; not ours to count
	// address of a graph's allocation node; its memory comes with the launch, from the device's graph pool
	MemoryGraph   MemoryKind = 9
	MemoryAddress MemoryKind = 10 // reserved address space, no memory
	// multicast object over memory of several devices; the address is the handle; without its own memory
	MemoryMulticast MemoryKind = 11
	MemoryImported  MemoryKind = 12 // VMM handle of another process's memory; the address is the handle
	MemoryModule    MemoryKind = 13 // variable of a module or library, known once the program has requested its address

	memoryKindCount = 14
)

var memoryKindNames = [memoryKindCount]string{"unknown", "device", "managed", "host", "registered", "async", "vmm",
	"array", "foreign", "graph", "address",
	"multicast", "imported", "module"}

// String returns the kind's name as it appears in reports and in the text form of a trace.
func (k MemoryKind) String() string {
	if int(k) < len(memoryKindNames) {
		return memoryKindNames[k]
	}
	return "unknown"
}

// ParseMemoryKind is the inverse of String; ok is false for a name that no kind has.
func ParseMemoryKind(name string) (kind MemoryKind, ok bool) {
	i := slices.Index(memoryKindNames[:], name)
	return MemoryKind(max(i, 0)), i >= 0
}

// OccupiesDevice reports whether live memory of this kind is part of what the device itself counts as used by the
// process.
func (k MemoryKind) OccupiesDevice() bool {
	switch k {
	case MemoryDevice, MemoryAsync, MemoryVMM, MemoryArray, MemoryModule:
		return true
	}
	return false
}
