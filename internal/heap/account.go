package heap

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// Account is one book of memory. Accounts are never added up.
type Account uint8

// The accounts.
const (
	AccountNone       Account = iota
	AccountDriver             // what occupies a device
	AccountFramework          // blocks that a framework's allocator cuts out of driver memory
	AccountManaged            // pages that move between host and device
	AccountHost               // pinned host memory that the driver allocated
	AccountRegistered         // host memory of the program, pinned in place
	AccountForeign            // opened from another process or another API
	AccountAddress            // reserved address space, which is no memory
	AccountGraph              // what the allocation nodes of graphs ask for; their memory is in the device's graph pool
	AccountMulticast          // multicast objects, which have no memory of their own
	AccountOther              // a framework's host blocks, and driver memory of a kind that this version does not know

	AccountCount
)

var accountNames = [AccountCount]string{"none", "driver", "framework", "managed", "host", "registered", "foreign",
	"address", "graph",
	"multicast", "other"}

// String returns the account's name as it appears in reports.
func (a Account) String() string {
	if a < AccountCount {
		return accountNames[a]
	}
	return "none"
}

// AccountOf says which book an allocation belongs to. Events of the runtime level are labels and belong to none.
func AccountOf(e *trace.Event) Account {
	switch e.Level {
	case cuda.LevelDriver:
		if e.Mem == cuda.MemoryVMM && e.Device < 0 {
			return AccountHost // physical memory of the host, by handle
		}
		return driverAccount(e.Mem)
	case cuda.LevelFramework:
		if e.Mem == cuda.MemoryHost || e.Mem == cuda.MemoryRegistered {
			return AccountOther
		}
		return AccountFramework
	}
	return AccountNone
}

func driverAccount(kind cuda.MemoryKind) Account {
	if kind.OccupiesDevice() {
		return AccountDriver
	}
	switch kind {
	case cuda.MemoryManaged:
		return AccountManaged
	case cuda.MemoryHost:
		return AccountHost
	case cuda.MemoryRegistered:
		return AccountRegistered
	case cuda.MemoryForeign, cuda.MemoryImported:
		return AccountForeign
	case cuda.MemoryAddress:
		return AccountAddress
	case cuda.MemoryGraph:
		return AccountGraph
	case cuda.MemoryMulticast:
		return AccountMulticast
	}
	return AccountOther
}

// CallOf names the call as the program made it.
func CallOf(e *trace.Event) cuda.API {
	if e.Runtime != cuda.APINone {
		return e.Runtime
	}
	return e.API
}

// Space is a set of addresses in which no two blocks can be live at once. A free is matched inside its space.
type Space uint8

const (
	SpaceDevice    Space = iota // driver addresses: device, managed, async, array, module, foreign
	spaceHost                   // pinned and registered host memory
	SpaceFramework              // a framework's blocks
	SpaceHandle                 // VMM handles, imported and multicast ones among them
	spaceAddress                // reserved address space, in which other memory may be mapped
	SpaceGraph                  // allocation nodes of graphs
	SpacePool                   // blocks of pools of the program's own

	SpaceCount
)

// SpaceOf says where to look an allocation or a free up.
func SpaceOf(e *trace.Event) Space {
	switch {
	case isOwnPool(e):
		return SpacePool
	case e.Level == cuda.LevelFramework:
		return SpaceFramework
	}
	return driverSpace(e.Mem)
}

// spaceOfOwned is the space of a block that has an owner.
func spaceOfOwned(b *Block) Space {
	if b.OfPool() {
		return SpacePool
	}
	return driverSpace(b.Mem)
}

func driverSpace(kind cuda.MemoryKind) Space {
	switch kind {
	case cuda.MemoryHost, cuda.MemoryRegistered:
		return spaceHost
	case cuda.MemoryVMM, cuda.MemoryImported, cuda.MemoryMulticast:
		return SpaceHandle
	case cuda.MemoryAddress:
		return spaceAddress
	case cuda.MemoryGraph:
		return SpaceGraph
	}
	return SpaceDevice
}
