package analyzer

// OOM lists the times at which memory ran out, the first ones where there are many.
type OOM struct {
	Count          uint64     `json:"count"`           // times at which the program did not get what it asked for
	RecoveredCount uint64     `json:"recovered_count"` // times at which it got it after giving something back
	RefusedCount   uint64     `json:"refused_count"`   // driver calls that were refused for want of memory; several may belong to one time
	Events         []OOMEvent `json:"events"`
}

// How running out of memory ended.
const (
	OOMFailed    = "failed"    // the caller was told that there is no memory
	OOMRecovered = "recovered" // a later attempt succeeded, after something was given back
)

// OOMEvent is one time at which memory ran out: every refused attempt that one thread made for one thing, and how it ended. What stands in it describes
// the moment of the last refusal. Detailed ones say who held the memory; only the first ones of a run are.
type OOMEvent struct {
	Seq            uint64 `json:"seq"` // order number of the event that the description belongs to
	TimeNS         int64  `json:"time_ns"`
	Device         int16  `json:"device"` // -1: host memory, or unknown
	Outcome        string `json:"outcome"`
	Level          string `json:"level"`  // "framework": its allocator gave up; "driver": the driver refused
	Memory         string `json:"memory"` // kind of memory that was asked for
	RequestedBytes uint64 `json:"requested_bytes"`

	Tag     string `json:"tag"`
	Site    string `json:"site,omitempty"` // place of the program that asked; "" unknown
	Thread  string `json:"thread"`
	Call    string `json:"call"`    // the refused call as the program made it; "" if the framework refused without asking the driver
	Library string `json:"library"` // that made it
	Caller  string `json:"caller"`  // where in it, "library+0xoffset"; "" unknown

	Attempts             uint64 `json:"attempts"`               // driver calls that were refused
	DriverRequestedBytes uint64 `json:"driver_requested_bytes"` // what the last of them asked for; allocators ask for more than a block
	FirstTimeNS          int64  `json:"first_time_ns"`          // of the first one
	ReleasedBytes        uint64 `json:"released_bytes"`         // driver memory of the device given back between the first and the last

	AllocatedBytes uint64 `json:"allocated_bytes"` // in the framework's words; 0 unless it gave up
	ReservedBytes  uint64 `json:"reserved_bytes"`  // in the framework's words; 0 unless it gave up
	DriverBytes    uint64 `json:"driver_live_bytes"`

	Detailed   bool          `json:"detailed"`
	TotalBytes uint64        `json:"total_bytes"`            // of the device; 0 unknown
	UsedBytes  uint64        `json:"used_bytes"`             // of the device, as far as known: what the rows of each ledger add up to
	FreeBytes  uint64        `json:"free_bytes"`             // total minus used: at most this is free where there is no sample
	Sample     *Sample       `json:"sample,omitempty"`       // the device's own latest word, if there is one
	Allocator  *OOMAllocator `json:"allocator,omitempty"`    // the framework's allocator, if one reports blocks on the device
	Ledgers    []Ledger      `json:"ledgers"`                // what filled the device, by tag, library, call and, where it is known, place of the program
	Since      *OOMGrowth    `json:"since,omitempty"`        // what is younger than the last step or mark
	StepBytes  []uint64      `json:"step_bytes"`             // live on the device when the latest steps began, oldest first
	Advice     []Advice      `json:"advice"`                 // what to try, the most promising first
	Sidecar    string        `json:"sidecar_file,omitempty"` // base name of the text file that the recorder wrote beside the trace

	LostRecords uint64 `json:"lost_records,omitempty"` // records lost by then, which may have changed what is said of owners

	sizes SizesAt `json:"-"` // of the device's memory at the moment
}

// OOMAllocator is what the framework's allocator held on the device.
type OOMAllocator struct {
	ReservedBytes  uint64    `json:"reserved_bytes"`  // from the driver
	AllocatedBytes uint64    `json:"allocated_bytes"` // in blocks
	IdleBytes      uint64    `json:"idle_bytes"`      // the difference: cached, in no block
	Pieces         Fragments `json:"pieces"`          // how the idle memory lies between the blocks; zero where records are missing for that
}

// OOMGrowth is the memory that came after a moment and is still there.
type OOMGrowth struct {
	What   string      `json:"what"` // "step 3", "mark loaded"
	TimeNS int64       `json:"time_ns"`
	Bytes  uint64      `json:"bytes"`
	Rows   []LedgerRow `json:"rows"` // by tag, most first
}

// Advice is something to try.
type Advice struct {
	Rule       string `json:"rule"`
	FreesBytes uint64 `json:"frees_bytes"` // about how much it would give here; 0 where it gives none or nobody can say
	Text       string `json:"text"`
}
