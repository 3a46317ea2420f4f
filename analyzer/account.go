package analyzer

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
	AccountOther              // a framework's host blocks, and driver memory of a kind that this version does not know

	accountCount
)

var accountNames = [accountCount]string{"none", "driver", "framework", "managed", "host", "registered", "foreign", "other"}

// String returns the account's name as it appears in reports.
func (a Account) String() string {
	if a < accountCount {
		return accountNames[a]
	}
	return "none"
}

// accountOf says which book an allocation belongs to. Events of the runtime level are labels and belong to none.
func accountOf(e *trace.Event) Account {
	switch e.Level {
	case cuda.LevelDriver:
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
	case cuda.MemoryForeign:
		return AccountForeign
	}
	return AccountOther
}

// space is a set of addresses in which no two blocks can be live at once. A free is matched inside its space.
type space uint8

const (
	spaceDevice    space = iota // driver addresses: device, managed, async, array, foreign
	spaceHost                   // pinned and registered host memory
	spaceFramework              // a framework's blocks
	spaceHandle                 // VMM handles

	spaceCount
)

// spaceOf says where to look an allocation or a free up.
func spaceOf(e *trace.Event) space {
	switch {
	case e.Level == cuda.LevelFramework:
		return spaceFramework
	case e.Mem == cuda.MemoryHost, e.Mem == cuda.MemoryRegistered:
		return spaceHost
	case e.Mem == cuda.MemoryVMM:
		return spaceHandle
	}
	return spaceDevice
}
