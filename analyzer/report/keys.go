package report

// Keys of groupings for unknown values.
const (
	Untagged = "(untagged)"
	Unnamed  = "(unnamed)"  // memory that no framework has a name for
	NoStack  = "(no stack)" // blocks whose call stack was not recorded
	// blocks that PyTorch held when recording began; their stacks are not known
	BeforeStart = "before recording began"
	NoModule    = "(no module)"   // memory of no known module
	NoOperator  = "(no operator)" // blocks whose call stack contains none
	// the caller of an event without a stack, or whose first frame is in no recorded module
	UnknownLibrary = "(unknown)"
	UnknownCall    = "(unknown call)" // of imported traces, which do not contain calls
)

// PoolOwner is the owner of driver memory that a pool of the program subdivides.
func PoolOwner(name string) string { return "pool " + name }

// Levels that blocks are reported at.
const (
	LevelDriver    = "driver"
	LevelFramework = "framework"
)
