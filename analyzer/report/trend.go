package report

// Trend says whether the program holds more and more, judged over the second half of the run and before its teardown,
// in which all is freed. It needs no iterations.
type Trend struct {
	Level string `json:"level"`
	// GrowthUnknown (too short a run, or records were lost), GrowthNone or GrowthSteady; the rest is zero unless it is
	// that
	Kind       string `json:"kind"`
	FromTimeNS int64  `json:"from_time_ns"` // since when
	ToTimeNS   int64  `json:"to_time_ns"`   // up to when it was looked at: about the last allocation
	// how much more is held since then, without what was only held for a while
	Bytes          uint64  `json:"bytes"`
	BytesPerSecond float64 `json:"bytes_per_second"`
	// the places that grow, most first; their bytes add up
	Owners []TrendOwner `json:"owners"`
	// until the device is full at this rate; 0: not known
	FullInSeconds float64 `json:"full_in_seconds,omitempty"`
}

// TrendOwner is one place whose memory grows.
type TrendOwner struct {
	Site  string `json:"site"`
	User  bool   `json:"user"` // the program's own code, not a library's
	Bytes uint64 `json:"bytes"`
}

// How what iterations leave behind changes.
const (
	GrowthUnknown = "unknown" // too few iterations to tell
	GrowthNone    = "none"
	GrowthSteady  = "steady" // the least that iterations leave behind rises throughout the run
)
