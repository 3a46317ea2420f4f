package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"memtrace/internal/rules"
	"memtrace/trace"
)

// OOM lists the times at which memory ran out, the first ones where there are many.
type OOM struct {
	Count          uint64 `json:"count"`           // times at which the program did not get what it asked for
	RecoveredCount uint64 `json:"recovered_count"` // times at which it got it after giving something back
	// driver calls that were refused for want of memory; several may belong to one time
	RefusedCount uint64     `json:"refused_count"`
	Events       []OOMEvent `json:"events"`

	// what came after a framework's allocator had given up, the first times
	Retries []OOMRetries `json:"retries,omitempty"`
}

// How running out of memory ended.
const (
	OOMFailed    = "failed"    // the caller was told that there is no memory
	OOMRecovered = "recovered" // a later attempt succeeded, after something was given back
)

// OOMEvent is one time at which memory ran out: every refused attempt that one thread made for one thing, and how it
// ended. What stands in it describes the moment of the last refusal. Detailed ones say who held the memory; only the
// first ones of a run are.
type OOMEvent struct {
	Seq            uint64 `json:"seq"` // order number of the event that the description belongs to
	TimeNS         int64  `json:"time_ns"`
	Device         int16  `json:"device"` // -1: host memory, or unknown
	Outcome        string `json:"outcome"`
	Level          string `json:"level"`  // "framework": its allocator gave up; "driver": the driver refused
	Memory         string `json:"memory"` // kind of memory that was asked for
	RequestedBytes uint64 `json:"requested_bytes"`

	Tag    string `json:"tag"`
	Site   string `json:"site,omitempty"` // place of the program that asked; "" unknown
	Thread string `json:"thread"`
	// the refused call as the program made it; "" if the framework refused without asking the driver
	Call    string `json:"call"`
	Library string `json:"library"` // that made it
	Caller  string `json:"caller"`  // where in it, "library+0xoffset"; "" unknown

	Attempts uint64 `json:"attempts"` // driver calls that were refused
	// what the last of them asked for; allocators ask for more than a block
	DriverRequestedBytes uint64 `json:"driver_requested_bytes"`
	FirstTimeNS          int64  `json:"first_time_ns"` // of the first one
	// driver memory of the device given back between the first and the last
	ReleasedBytes uint64 `json:"released_bytes"`

	AllocatedBytes uint64 `json:"allocated_bytes"` // in the framework's words; 0 unless it gave up
	ReservedBytes  uint64 `json:"reserved_bytes"`  // in the framework's words; 0 unless it gave up
	DriverBytes    uint64 `json:"driver_live_bytes"`

	Detailed bool `json:"detailed"`
	// of the device, and where there is a sample with what the driver keeps of it, which CUDA leaves out of its size; 0
	// unknown
	TotalBytes uint64 `json:"total_bytes"`
	// of the device, as far as known: what the rows of each ledger add up to
	UsedBytes uint64 `json:"used_bytes"`
	// total minus used: at most this is free where there is no sample
	FreeBytes uint64  `json:"free_bytes"`
	Sample    *Sample `json:"sample,omitempty"` // the device's own latest word, if there is one
	// the framework's allocator, if one reports blocks on the device
	Allocator *OOMAllocator `json:"allocator,omitempty"`
	// what filled the device, by tag, library, call and, where it is known, place of the program
	Ledgers []Ledger   `json:"ledgers"`
	Since   *OOMGrowth `json:"since,omitempty"` // what is younger than the last step or mark
	// what the framework's blocks were for, where that is known
	Categories []OOMCategory `json:"categories,omitempty"`
	// what they consisted of, by how long each part is meant to stay; nil where that is not known
	Composition *OOMComposition `json:"composition,omitempty"`
	// live on the device when the latest steps began, oldest first
	StepBytes []uint64 `json:"step_bytes"`
	Advice    []Advice `json:"advice"` // what to try, the most promising first
	// base name of the text file that the recorder wrote beside the trace
	Sidecar string `json:"sidecar_file,omitempty"`

	// records lost by then, which may have changed what is said of owners
	LostRecords uint64 `json:"lost_records,omitempty"`

	Sizes SizesAt `json:"-"` // of the device's memory at the moment

	// Of the first event that failed: the blocks by inner line, operator and module, where places of the program are
	// told. They have no rows but those of blocks.
	Through []Ledger `json:"-"`
	Seen    OOMSeen  `json:"-"` // of the same event
	// Division is that of the place that holds most of the blocks at this moment, as a summary has of its own
	Division *Division `json:"-"`
}

// OOMSeen is what the blocks of a moment, that of an event or the peak, say of the program.
type OOMSeen struct {
	Autocast    bool   // an operator ran under torch.autocast
	LoadedBytes uint64 // in blocks without a name that hold tensors read from a checkpoint
	NamedBytes  uint64 // in parameters, buffers and optimizer state
}

// Add takes in blocks with names of a category; loads reports whether their call stack reads a checkpoint.
func (s *OOMSeen) Add(bytes uint64, named trace.Category, loads func() bool) {
	switch named {
	case trace.CategoryParameter, trace.CategoryBuffer, trace.CategoryOptimizer:
		s.NamedBytes += bytes
	case trace.CategoryNone:
		if loads() {
			s.LoadedBytes += bytes
		}
	}
}

// LoadedTwice is how much was read from a checkpoint and is there a second time.
func (s *OOMSeen) LoadedTwice() uint64 { return min(s.LoadedBytes, s.NamedBytes) }

// OOMAllocator is what the framework's allocator held on the device.
type OOMAllocator struct {
	ReservedBytes  uint64 `json:"reserved_bytes"`  // from the driver
	AllocatedBytes uint64 `json:"allocated_bytes"` // in blocks
	IdleBytes      uint64 `json:"idle_bytes"`      // the difference: cached, in no block
	// how the idle memory lies between the blocks; zero where records are missing for that
	Pieces Fragments `json:"pieces"`
	// the same without private pools, as those of CUDA graphs, of which no other request gets anything
	Common  Fragments     `json:"-"`
	Private []PrivatePool `json:"private_pools,omitempty"` // in the order of their numbers
}

// IdleMemory is how memory that is reserved and in no block lies.
type IdleMemory struct {
	All     Fragments
	Common  Fragments     // without private pools
	Private []PrivatePool // in the order of their numbers
	// how much less the framework would have reserved at most in segments that grow; 0: none, or not known
	GrowingFrees uint64
}

// PrivatePool is what a private pool of PyTorch's allocator holds.
type PrivatePool struct {
	Number        uint32 `json:"number"` // 2 n for the pool (n, 0), which captures of graphs make; 2 n + 1 for (0, n)
	ReservedBytes uint64 `json:"reserved_bytes"`
	IdleBytes     uint64 `json:"idle_bytes"`
}

// PrivateBytes is what of private pools is idle, and what of that one pool for all of them gives back.
func PrivateBytes(pools []PrivatePool) (idle, shared uint64) {
	var reserved, most uint64
	for _, p := range pools {
		reserved, most, idle = reserved+p.ReservedBytes, max(most, p.ReservedBytes), idle+p.IdleBytes
	}
	return idle, min(idle, reserved-most)
}

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
// several times before an attempt succeeds, also in a second step. Sizes are bytes, times nanoseconds since the trace's
// base, 0 where there is none.
type OOMRetries struct {
	Device              int16  `json:"device"`
	FailedCount         uint64 `json:"failed_count"` // attempts that failed
	FirstTimeNS         int64  `json:"first_time_ns"`
	FirstRequestedBytes uint64 `json:"first_requested_bytes"` // by the first of them
	LastTimeNS          int64  `json:"last_time_ns"`
	RequestedBytes      uint64 `json:"requested_bytes"` // by the last of them

	// at the failure where it was most: what attempts that had failed before had made and something still held, and all
	// that was in blocks; 0 where nothing is known to be left
	LeftTimeNS int64  `json:"left_time_ns,omitempty"`
	LeftBytes  uint64 `json:"left_bytes,omitempty"`
	LiveBytes  uint64 `json:"live_bytes,omitempty"`

	// when the Python call stack of the last failure first was granted a block afterwards
	GrantedTimeNS int64  `json:"granted_time_ns,omitempty"`
	GrantedBytes  uint64 `json:"granted_bytes,omitempty"`
	// when a block of at least RequestedBytes was first granted afterwards, whoever asked
	AsMuchTimeNS int64  `json:"as_much_time_ns,omitempty"`
	AsMuchBytes  uint64 `json:"as_much_bytes,omitempty"`
	// when the first step ended afterwards: the next attempt succeeded
	StepTimeNS int64 `json:"step_time_ns,omitempty"`
}

// Succeeded reports whether an attempt is known to have succeeded, and its number, counted from 1.
func (r *OOMRetries) Succeeded() (attempt uint64, ok bool) {
	return r.FailedCount + 1, r.StepTimeNS != 0
}

// Leaves reports whether failed attempts left enough behind for it to be the reason that later ones failed.
func (r *OOMRetries) Leaves() bool { return LeavesOf(r.LeftBytes, r.LiveBytes) }

// LeavesOf is Leaves of what is in blocks at one refusal.
func LeavesOf(left, live uint64) bool { return left > 0 && left >= live/5 }

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

func (e *OOMEvent) DropDetails() {
	e.Detailed, e.Sample, e.Allocator, e.Since, e.Through, e.Seen = false, nil, nil, nil, nil, OOMSeen{}
	e.Division = nil
	e.Ledgers, e.StepBytes, e.Advice, e.Categories = []Ledger{}, []uint64{}, []Advice{}, nil
	e.Composition = nil
	e.UsedBytes, e.FreeBytes = 0, 0
}

// Balance adds to the ledgers what only the device itself knows, and makes the sums. It may be repeated with another
// sample.
func (v *OOMEvent) Balance() {
	for i := range v.Ledgers {
		l := &v.Ledgers[i]
		l.Rows = slices.DeleteFunc(l.Rows, func(r LedgerRow) bool {
			return r.Owner != OwnerBlocks && r.Owner != OwnerSlack && r.Owner != OwnerOutside
		})
		add := func(owner, key string, bytes int64) {
			if bytes > 0 {
				l.Rows = append(l.Rows, LedgerRow{Owner: owner, Key: key, Bytes: uint64(bytes)})
			}
		}
		add(OwnerRounding, "rounding to 512 bytes", int64(v.Sizes.RoundedBytes-v.Sizes.RequestedBytes))
		add(OwnerPoolIdle, "memory pools, idle", int64(v.Sizes.PoolIdleBytes))
		add(OwnerGraphPool, "graph memory pool", int64(v.Sizes.GraphPoolBytes))
		if s := v.Sample; s != nil {
			add(OwnerContext, "CUDA context and code", int64(s.ContextBytes))
			add(OwnerOthers, "other processes", int64(s.OthersBytes))
			add(OwnerKept, "driver and firmware", int64(s.KeptBytes))
			remainder := "reported by the device, not tracked"
			if !s.ShareKnown {
				remainder = "not tracked, or other processes"
			}
			add(OwnerRemainder, remainder, s.RemainderBytes)
		}
		l.WholeBytes = 0
		for _, row := range l.Rows {
			l.WholeBytes += row.Bytes
		}
		v.UsedBytes = l.WholeBytes
	}
	v.FreeBytes = v.TotalBytes - min(v.TotalBytes, v.UsedBytes)
}

// OwnBytes is what is in use of the device without what other processes hold, or may hold where nobody said which
// share is theirs: what the program can do something about.
func (e *OOMEvent) OwnBytes() uint64 {
	others := uint64(0)
	if s := e.Sample; s != nil {
		others = s.OthersBytes
		if !s.ShareKnown {
			others = uint64(max(s.RemainderBytes, 0))
		}
	}
	return e.UsedBytes - min(e.UsedBytes, others)
}

// KeptBytes is what the driver and the firmware keep of the device, as far as known: in use for ever.
func (e *OOMEvent) KeptBytes() uint64 {
	if e.Sample == nil {
		return 0
	}
	return e.Sample.KeptBytes
}

// Ledger returns the event's ledger by a grouping; an empty one if it has none.
func (e *OOMEvent) Ledger(by string) *Ledger {
	if l := ledgerBy(e.Ledgers, by); l != nil {
		return l
	}
	return &Ledger{}
}

// OOMReport is an OOM event with what a reader must know of the run when the trace is not at hand.
type OOMReport struct {
	Process  Process           `json:"process"`
	Versions map[string]string `json:"versions"`
	NullGPU  bool              `json:"null_gpu"`
	Devices  []Device          `json:"devices"`
	Event    OOMEvent          `json:"event"`
	KeptBy   *KeptBy           `json:"kept_by,omitempty"` // who referred to tensors then; of the first event
}

// Section returns the report as the text of a trace's OOM section. Lists that would make it too long are cut to their
// largest rows.
func (r *OOMReport) Section() (string, error) {
	for _, rows := range []int{1 << 16, 200, 20} {
		text, err := json.Marshal(r.WithRows(rows))
		if err != nil {
			return "", fmt.Errorf("encode the OOM report: %w", err)
		}
		if len(text) <= trace.MaxOOMBytes {
			return string(text), nil
		}
	}
	return "", fmt.Errorf("encode the OOM report: it is longer than %d bytes", trace.MaxOOMBytes)
}

// WithRows returns a copy whose lists have at most limit rows each; what is left out is one row, so that sums stay.
func (r *OOMReport) WithRows(limit int) *OOMReport {
	c := *r
	c.Event.Ledgers = make([]Ledger, len(r.Event.Ledgers))
	for i, l := range r.Event.Ledgers {
		l.Rows = fewerRows(l.Rows, limit)
		c.Event.Ledgers[i] = l
	}
	if r.Event.Since != nil {
		since := *r.Event.Since
		since.Rows = fewerRows(since.Rows, limit)
		c.Event.Since = &since
	}
	return &c
}

// fewerRows sums up the smallest block rows; they come first, and largest first, so the cut is behind the ones to keep.
func fewerRows(rows []LedgerRow, limit int) []LedgerRow {
	n := 0
	for n < len(rows) && rows[n].Owner == OwnerBlocks {
		n++
	}
	if n <= limit {
		return rows
	}
	rest := LedgerRow{Owner: OwnerBlocks, Key: fmt.Sprintf("(%d more)", n-limit)}
	for _, row := range rows[limit:n] {
		rest.Bytes += row.Bytes
	}
	return append(append(append([]LedgerRow{}, rows[:limit]...), rest), rows[n:]...)
}

// DetailedOOM is the index of the out-of-memory event that a report tells in full: the first one that failed, 0 if none
// did. There must be an event.
func (s *Summary) DetailedOOM() int {
	return max(slices.IndexFunc(s.OOM.Events, func(e OOMEvent) bool { return e.Outcome == OOMFailed }), 0)
}

// ThroughLedger returns the event's blocks by "inner", "operator" or "module"; nil if they are not told.
func (e *OOMEvent) ThroughLedger(by string) *Ledger { return ledgerBy(e.Through, by) }

// DrivenByLibrary reports whether one line of the program asked for most of the blocks and lines of a library beneath
// it say more, as where a trainer runs the loop.
func (e *OOMEvent) DrivenByLibrary() bool {
	inner := e.ThroughLedger("inner")
	top, found := e.Ledger("site").Largest(OwnerBlocks, func(r LedgerRow) bool { return KnownKey(r.Key) })
	return inner != nil && found && inner.SeesThrough(top.Key, top.Bytes, inner.blockBytes())
}
