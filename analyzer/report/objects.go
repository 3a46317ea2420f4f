package report

// ObjectCount is the number of objects of one kind.
type ObjectCount struct {
	CreatedCount uint64 `json:"created_count"` // noticed ones among them
	// may be more than were created: the recorder may miss beginnings
	DestroyedCount uint64 `json:"destroyed_count"`
	LiveCount      uint64 `json:"live_count"`   // at the end of the trace, of those created
	FailedCount    uint64 `json:"failed_count"` // creations that were refused
}

// ImplicitFrees counts blocks that were freed because their context, graph or module ended.
type ImplicitFrees struct {
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// Add counts a block.
func (f *ImplicitFrees) Add(bytes uint64) {
	f.Count++
	f.Bytes += bytes
}
