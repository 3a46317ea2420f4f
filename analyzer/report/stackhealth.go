package report

// StackHealth counts the allocations of both levels by what is known of their call stacks.
type StackHealth struct {
	AllocCount  uint64            `json:"alloc_count"`
	NoneCount   uint64            `json:"without_stack"` // neither a native nor a Python stack
	PythonCount uint64            `json:"with_python"`   // with Python frames
	NativeCut   map[string]uint64 `json:"native_cut"`    // native stacks that are not whole, by the reason
	PythonCut   map[string]uint64 `json:"python_cut"`    // Python stacks that are not whole, by the reason
	CutCount    uint64            `json:"cut"`           // of which one of the two is not whole
	CallerOnly  uint64            `json:"caller_only"`   // no more than the caller was asked for
}
