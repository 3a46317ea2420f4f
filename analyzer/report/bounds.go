package report

// Bounds describe what lost records mean for the figures of a summary. A figure's lower bound is next to it, under its
// name with the suffix _lower.
type Bounds struct {
	LostRecords uint64  `json:"lost_records"`
	LostFrees   *uint64 `json:"lost_frees,omitempty"`  // of them, frees, unmappings and destructions; nil: not known
	LostOthers  *uint64 `json:"lost_others,omitempty"` // of them, all others, which may be allocations; nil: unknown
	Cause       string  `json:"cause"`

	// RecordedIsUpper: only records were lost that end memory, so that the true values are at most those recorded.
	RecordedIsUpper bool `json:"recorded_is_upper"`
	// Placed: it is known where records were lost. Otherwise nothing that was replayed is certain.
	Placed bool `json:"placed"`
	// ExactBeforeNS is the time before which everything is exact; 0 unless Placed.
	ExactBeforeNS int64 `json:"exact_before_ns"`

	Exact []string `json:"exact"` // paths of figures that lost records cannot have changed
	// paths of figures that have no bounds here although lost records may have changed them
	AsRecorded []string `json:"as_recorded"`
}

// Plus adds to a figure that may not have begun.
func Plus(sum *uint64, bytes uint64) *uint64 {
	if sum == nil {
		return &bytes
	}
	*sum += bytes
	return sum
}
