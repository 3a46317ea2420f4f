package report

// Categories divide what was held at the ledgers' moment by a set of rules.
type Categories struct {
	By           string `json:"by"`
	Rules        string `json:"rules"` // name of the set
	Mode         string `json:"mode"`  // "first-match" or "multi-match"
	Level        string `json:"level"`
	Moment       string `json:"moment"`
	TimeNS       int64  `json:"time_ns"`
	TrackedBytes uint64 `json:"tracked_bytes"` // held by blocks of the level
	SumBytes     uint64 `json:"sum_bytes"`     // of all rows
	// SumBytes less TrackedBytes: counted more than once; 0 unless multi-match
	ExcessBytes uint64       `json:"excess_bytes"`
	Rows        []Category   `json:"rows"` // most first, then rules.Others, which is always listed
	Untrackable *Untrackable `json:"untrackable,omitempty"`
}

// Category is one row.
type Category struct {
	Key        string          `json:"key"`
	Bytes      uint64          `json:"bytes"`
	EntryCount uint64          `json:"entry_count"` // number of its tags and places
	Entries    []CategoryEntry `json:"entries"`     // the largest of them, as many as Options.Entries

	Requested *Requested `json:"requested,omitempty"` // as of a Level
}

// CategoryEntry is the memory of one tag from one place.
type CategoryEntry struct {
	Tag   string `json:"tag,omitempty"`
	Site  string `json:"site,omitempty"` // only with Question.Sites
	User  bool   `json:"user"`           // the site is the program's own code
	Bytes uint64 `json:"bytes"`
}

// Untrackable is the memory counted by another source beyond what the trace accounts for. It may be negative.
type Untrackable struct {
	From          string `json:"from"`           // UntrackableExpected or UntrackableDevice
	ReportedBytes uint64 `json:"reported_bytes"` // by the source in From
	TrackedBytes  uint64 `json:"tracked_bytes"`  // by the trace, of the driver's memory, at the same moment
	Bytes         int64  `json:"bytes"`          // the difference
}

// The source of the figure from which tracked memory is subtracted.
const (
	UntrackableExpected = "expected" // Options.Expected, at the ledgers' moment
	UntrackableDevice   = "device"   // the device's figure for this process, at the sample of the device ledger
)
