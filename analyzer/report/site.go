package report

// Sites are the places in the program that allocated what was held at the ledgers' moment.
type Sites struct {
	Level      string `json:"level"`       // the ledgers' level
	Moment     string `json:"moment"`      // "peak", or the requested moment
	TimeNS     int64  `json:"time_ns"`     // when that was
	WholeBytes uint64 `json:"whole_bytes"` // held by blocks of the level; the places add up to it
	Places     []Site `json:"places"`      // most first
}

// Site is one place.
type Site struct {
	Key        string `json:"key"`
	User       bool   `json:"user"` // the program's own code, not a library's
	Bytes      uint64 `json:"bytes"`
	AllocCount uint64 `json:"alloc_count"` // in the whole run
	AllocBytes uint64 `json:"alloc_bytes"`
	// call stacks that held something then, equal ones joined
	StackCount uint64       `json:"stack_count"`
	StackBytes uint64       `json:"stack_bytes"` // held by the one that is shown, the largest
	Frames     []StackFrame `json:"frames"`      // innermost first; empty without a stack
	Folded     uint64       `json:"folded_frames"`
	Cut        string       `json:"cut,omitempty"` // why the shown stack is not whole

	Named bool `json:"-"` // by a function, not only by an address
}

// Kinds of stack frames.
const (
	FramePython = "python"
	FrameNative = "native"
)

// StackFrame is one function of a call stack.
type StackFrame struct {
	Kind     string `json:"kind"`     // FramePython or FrameNative
	Function string `json:"function"` // or the object file and an offset
	File     string `json:"file"`     // source file, shortened; "" unknown
	Path     string `json:"path"`     // the same as it was recorded
	Line     int    `json:"line"`     // 0 unknown
	Module   string `json:"module"`   // path of the object file; "" for Python
	Address  uint64 `json:"address"`  // inside the object file; 0 for Python
	User     bool   `json:"user"`     // the program's own code
	Nameless bool   `json:"nameless"` // Function names no function
	Operator bool   `json:"operator"` // Function is the name of a framework's operator
}

// RowSite is a place and its part of a row.
type RowSite struct {
	Key   string `json:"key"`
	User  bool   `json:"user"`
	Bytes uint64 `json:"bytes"`
	Rest  uint64 `json:"rest_bytes,omitempty"` // of them, what a framework's blocks have beyond the requests
}
