package report

import (
	"cmp"
	"strings"

	"memtrace/analyzer/rules"
)

// OOMCategory is what some of a framework's blocks were for when memory ran out.
type OOMCategory struct {
	Category   string `json:"category"`
	Bytes      uint64 `json:"bytes"`
	BlockCount uint64 `json:"block_count"`
}

// CompareOOMCategories sorts by bytes, most first, and rules.Others behind all.
func CompareOOMCategories(a, b OOMCategory) int {
	if (a.Category == rules.Others) != (b.Category == rules.Others) {
		if a.Category == rules.Others {
			return 1
		}
		return -1
	}
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Category, b.Category))
}

// OOMRetries is what came after a framework's allocator had given up on a device. Failures belong together until eight
// steps in a row end, of the program or of an optimizer: a program that makes its batch smaller and tries again fails
// several times before an attempt succeeds, also in a second step. Sizes are bytes, times nanoseconds since the trace's base, 0 where there is none.
type OOMRetries struct {
	Device              int16  `json:"device"`
	FailedCount         uint64 `json:"failed_count"` // attempts that failed
	FirstTimeNS         int64  `json:"first_time_ns"`
	FirstRequestedBytes uint64 `json:"first_requested_bytes"` // by the first of them
	LastTimeNS          int64  `json:"last_time_ns"`
	RequestedBytes      uint64 `json:"requested_bytes"` // by the last of them

	GrantedTimeNS int64  `json:"granted_time_ns,omitempty"` // when the Python call stack of the last failure first was granted a block afterwards
	GrantedBytes  uint64 `json:"granted_bytes,omitempty"`
	AsMuchTimeNS  int64  `json:"as_much_time_ns,omitempty"` // when a block of at least RequestedBytes was first granted afterwards, whoever asked
	AsMuchBytes   uint64 `json:"as_much_bytes,omitempty"`
	StepTimeNS    int64  `json:"step_time_ns,omitempty"` // when the first step ended afterwards: the next attempt succeeded
}

// Succeeded reports whether an attempt is known to have succeeded, and its number, counted from 1.
func (r *OOMRetries) Succeeded() (attempt uint64, ok bool) {
	return r.FailedCount + 1, r.StepTimeNS != 0
}
