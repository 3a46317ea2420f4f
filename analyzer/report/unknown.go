package report

// Keys of groupings for what is not known.
const (
	Untagged       = "(untagged)"
	Unnamed        = "(unnamed)"     // memory that no framework has a name for
	NoStack        = "(no stack)"    // blocks whose call stack was not recorded
	NoModule       = "(no module)"   // memory of no known module
	NoOperator     = "(no operator)" // blocks whose call stack shows none
	UnknownLibrary = "(unknown)"     // the caller of an event without a stack, or whose first frame lies in no recorded module
)

// Levels that blocks are reported at.
const (
	LevelDriver    = "driver"
	LevelFramework = "framework"
)

// Kinds of ledger rows that only OOM events and device ledgers have; see OwnerBlocks and its like, and OwnerRounding.
const (
	OwnerContext = "context" // the CUDA context and its code
	OwnerKept    = "kept"    // kept by the driver and the firmware
	OwnerOthers  = "others"  // held by other processes
)

// Kinds of device ledger rows beyond those of a Ledger and of an OOM event.
const (
	OwnerRounding  = "rounding"   // blocks take multiples of 512 bytes
	OwnerPoolIdle  = "pool_idle"  // held by stream-ordered pools, in no live block
	OwnerGraphPool = "graph_pool" // held for the allocation nodes of graphs
	OwnerUnlisted  = "unlisted"   // in use, but by no process that the device lists
	OwnerRemainder = "remainder"  // of this process, unexplained
)
