package report

import "strings"

// Allocator is the settings and the activity of a framework's allocator apart from its blocks.
type Allocator struct {
	Settings    []Setting      `json:"settings"`           // in order of time
	Fractions   []Fraction     `json:"memory_fractions"`   // in order of time
	EmptyCache  EmptyCache     `json:"empty_cache"`        //
	Asked       []FreeQuestion `json:"free_memory_asked"`  // by caller, most often first
	Waiting     Waiting        `json:"waiting"`            //
	PoolCount   int            `json:"private_pool_count"` // private pools of blocks
	StreamCount int            `json:"stream_count"`       // streams that blocks were allocated for
	NotRecorded []string       `json:"not_recorded"`       // what the trace does not contain of this, and why
}

// Setting is a text that was passed to the allocator, such as "expandable_segments:True".
type Setting struct {
	TimeNS int64  `json:"time_ns"`
	Text   string `json:"text"`
}

// ExpandsSegments reports whether settings of PyTorch's allocator let its segments grow.
func ExpandsSegments(settings string) bool {
	return strings.Contains(strings.ToLower(strings.ReplaceAll(settings, " ", "")), "expandable_segments:true")
}

// Fraction is the share of a device that the allocator may use from a moment on.
type Fraction struct {
	TimeNS   int64   `json:"time_ns"`
	Device   int16   `json:"device"`
	Fraction float64 `json:"fraction"`
}

// EmptyCache counts the requests to release unused memory, including the allocator's own, as when a private pool ends.
type EmptyCache struct {
	Count         uint64 `json:"count"`
	GivenBack     uint64 `json:"given_back_bytes"` // to the driver, by all of them
	LargestBytes  uint64 `json:"largest_bytes"`    // by one
	LargestTimeNS int64  `json:"largest_time_ns"`  // when that one began
	NothingCount  uint64 `json:"nothing_count"`    // of them, those that gave nothing back
	Place         string `json:"largest_place"`    // where in the program that one was called; "" unknown
}

// FreeQuestion is one place that queried the driver's free memory.
type FreeQuestion struct {
	Place     string `json:"place"`   // in the program; "" unknown
	Library   string `json:"library"` // that made the call
	Call      string `json:"call"`
	Device    int16  `json:"device"`
	Count     uint64 `json:"count"`
	FirstFree uint64 `json:"first_free_bytes"` // the first answer
	LastFree  uint64 `json:"last_free_bytes"`
	Total     uint64 `json:"total_bytes"` // of the device, as of the last query
	FirstNS   int64  `json:"first_time_ns"`
}

// Waiting are blocks that the program freed and that the allocator cannot reuse before other streams are done with
// them.
type Waiting struct {
	Blocks  uint64 `json:"block_count"`   // that waited at any time
	Peak    uint64 `json:"peak_bytes"`    // the most at one time, of all devices
	AtPeak  uint64 `json:"at_peak_bytes"` // when the framework's blocks peaked
	Live    uint64 `json:"live_bytes"`    // at the end
	Unknown uint64 `json:"unknown_count"` // waits of unknown blocks: freed while a graph was captured
}

// Requested divides a framework's blocks by the requested bytes: an allocator rounds sizes up, and returns a block
// whole if its remainder is not worth splitting off. The three add up to the level's bytes.
type Requested struct {
	Bytes        uint64 `json:"bytes"`         // requested
	RestBytes    uint64 `json:"rest_bytes"`    // in the same blocks beyond that
	UnknownBytes uint64 `json:"unknown_bytes"` // in blocks whose request is unknown
}

// PlusRequested adds up the known parts of two; nil for nothing.
func PlusRequested(a, b *Requested) *Requested {
	switch {
	case b == nil:
		return a
	case a == nil:
		return new(*b)
	}
	return &Requested{Bytes: a.Bytes + b.Bytes, RestBytes: a.RestBytes + b.RestBytes,
		UnknownBytes: a.UnknownBytes + b.UnknownBytes}
}
