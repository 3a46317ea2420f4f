package report

// Requested divides a framework's blocks by what the program requested: an allocator rounds sizes up, and hands a block
// out whole where its rest is not worth splitting off. The three add up to the level's bytes.
type Requested struct {
	Bytes        uint64 `json:"bytes"`         // requested
	RestBytes    uint64 `json:"rest_bytes"`    // in the same blocks beyond that
	UnknownBytes uint64 `json:"unknown_bytes"` // in blocks whose request is not known
}
