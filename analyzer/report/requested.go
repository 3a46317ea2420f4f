package report

// Requested divides a framework's blocks by what the program requested: an allocator rounds sizes up, and hands a block
// out whole where its rest is not worth splitting off. The three add up to the level's bytes.
type Requested struct {
	Bytes        uint64 `json:"bytes"`         // requested
	RestBytes    uint64 `json:"rest_bytes"`    // in the same blocks beyond that
	UnknownBytes uint64 `json:"unknown_bytes"` // in blocks whose request is not known
}

// PlusRequested adds up what is known of two; nil for nothing.
func PlusRequested(a, b *Requested) *Requested {
	switch {
	case b == nil:
		return a
	case a == nil:
		return new(*b)
	}
	return &Requested{Bytes: a.Bytes + b.Bytes, RestBytes: a.RestBytes + b.RestBytes, UnknownBytes: a.UnknownBytes + b.UnknownBytes}
}
