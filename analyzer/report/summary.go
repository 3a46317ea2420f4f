package report

import (
	"slices"
)

// Summary is what one trace says. It is a value: nothing in it refers to the trace. Sizes are bytes, times are
// nanoseconds since the trace's time base. The json names are published in docs/report-json.md; they may be added to,
// never changed.
type Summary struct {
	LostRecords uint64   `json:"lost_records"`
	Bounds      *Bounds  `json:"bounds,omitempty"`  // nil if nothing was lost
	Thinned     *Thinned `json:"thinned,omitempty"` // nil if every event is there
	Process     Process  `json:"process"`
	// of what took part: torch, mxnet, python, cuda_driver, cuda_runtime, memtrace
	Versions map[string]string `json:"versions"`
	NullGPU  bool              `json:"null_gpu"` // no real GPU was used

	Devices   []Device                 `json:"devices"`
	Driver    Level                    `json:"driver"`    // all devices
	Framework Level                    `json:"framework"` // all devices
	Other     map[string]Level         `json:"other_memory"`
	Implicit  map[string]ImplicitFrees `json:"implicit_frees"` // by account
	// contexts, pools, modules, graphs and so on, by kind
	Objects  map[string]ObjectCount `json:"objects"`
	Launches uint64                 `json:"graph_launches"`
	Groups   []Group                `json:"groups"`
	Ledgers  []Ledger               `json:"ledgers"`
	Sites    *Sites                 `json:"sites,omitempty"` // nil unless Question.Sites
	// of the place that holds more than half of the ledgers' level; nil without one, or unless Question.Sites
	Division *Division `json:"division,omitempty"`
	// in which the stacks of most memory at the peak come together, where no modules hold it; nil if there is none
	Function   *VerdictShare `json:"-"`
	Cross      *Cross        `json:"cross,omitempty"`      // nil unless Question.Cross
	Categories []Categories  `json:"categories,omitempty"` // for every grouping that is made of rules
	Training   *Training     `json:"training,omitempty"`   // nil unless Options.Training
	Trend      *Trend        `json:"trend"`
	// OtherTrends are the judgements on other kinds of memory that the program used
	OtherTrends []Trend `json:"other_trends"`
	// at the peak: read from a checkpoint onto the device, and there a second time by name
	LoadedTwiceBytes uint64 `json:"loaded_twice_bytes,omitempty"`
	// blocks at the peak that are as large as all parameters; nil if there are none
	ParameterCopies *ParameterCopies `json:"parameter_copies,omitempty"`
	KeptBy          *KeptBy          `json:"kept_by,omitempty"` // who refers to PyTorch's tensors; nil where nothing looked for that
	// of each level that was used, the framework first
	Heights   []Heights               `json:"heights"`
	Lifetimes map[string]LifetimeHist `json:"lifetimes"`

	DeviceLedger *DeviceReport `json:"device_ledger,omitempty"` // nil if the recorder did not ask the devices
	OwnAccounts  []OwnAccount  `json:"own_accounts,omitempty"`  // filled in by who can read them
	Allocator    *Allocator    `json:"allocator,omitempty"`     // of PyTorch; nil where it took no part

	// what was reserved and in no block at the framework's peak; nil where the trace does not tell where it lay
	IdleAtPeak *IdleMemory `json:"-"`

	Marks  []Mark     `json:"marks"`
	Steps  Iterations `json:"steps"`
	Epochs Iterations `json:"epochs"`
	OOM    OOM        `json:"oom"`
	At     *Moment    `json:"at,omitempty"`
	Window *Window    `json:"window,omitempty"` // nil: the whole run

	Timeline *Timeline `json:"timeline,omitempty"` // nil unless Options.Timeline

	Parts []DevicePart `json:"-"` // of the devices that were used; nil unless Question.ByDevice

	History *History `json:"-"` // of the main level's blocks; nil unless Options.HistoryBlocks

	Limits []Finding `json:"-"` // Notes with their kinds

	Unmatched []string `json:"-"` // filters that let nothing pass, and what there is instead

	By    []string `json:"by"` // the groupings to show to people: those asked for, else the one that says most
	Asked bool     `json:"-"`  // By was asked for
	// read from a profile, which says nothing of other moments, of parts of the run and of blocks
	FromProfile bool     `json:"-"`
	Filter      []string `json:"filter"` // the filters that were on, in words
	Notes       []string `json:"notes"`  // what the reader must know to read the numbers rightly
	Health      Health   `json:"health"`
}

// AddNotes adds what the reader must know to read the figures rightly.
func (s *Summary) AddNotes(list ...Finding) {
	for _, f := range list {
		s.Limits, s.Notes = append(s.Limits, f), append(s.Notes, f.Text)
	}
}

// Thinned says that the older part of the trace has only the blocks that were live at its peaks, at marks, samples and
// OOM events, and at the part's end.
type Thinned struct {
	UntilTimeNS   int64  `json:"until_time_ns"`   // from then on every event is there
	LeftOutEvents uint64 `json:"left_out_events"` // before that
}

// How a run ended.
const (
	EndedClean   = "clean"
	EndedKilled  = "killed"
	EndedRunning = "running"
	EndedUnknown = "unknown" // the trace lacks its end
)

// Level is one account of memory, of one device or of all.
type Level struct {
	PeakBytes   uint64 `json:"peak_bytes"`
	PeakTimeNS  int64  `json:"peak_time_ns"`
	LiveBytes   uint64 `json:"live_bytes"` // at the end of the trace
	AllocCount  uint64 `json:"alloc_count"`
	FreeCount   uint64 `json:"free_count"`
	AllocBytes  uint64 `json:"alloc_bytes"`  // sum over all allocations
	FailedCount uint64 `json:"failed_count"` // allocations that were refused

	// What is certain where records were lost; nil where none were.
	PeakBytesLower *uint64 `json:"peak_bytes_lower,omitempty"`
	LiveBytesLower *uint64 `json:"live_bytes_lower,omitempty"`

	// What was requested of the bytes at the peak and at the end, of a framework that tells; nil where none does, and
	// where records were lost.
	RequestedAtPeak *Requested `json:"requested_at_peak,omitempty"`
	RequestedLive   *Requested `json:"requested_live,omitempty"`

	StartCount uint64 `json:"-"` // blocks that are not among AllocCount, being older than the window
}

// Empty reports whether nothing was ever asked of the level.
func (l Level) Empty() bool { return l.AllocCount == 0 && l.FailedCount == 0 && l.StartCount == 0 }

// LiveCount is how many blocks are live at the end.
func (l Level) LiveCount() uint64 { return l.StartCount + l.AllocCount - l.FreeCount }

// Device is one GPU.
type Device struct {
	Index      int16  `json:"index"` // -1: device unknown
	Name       string `json:"name"`
	UUID       string `json:"uuid"`
	TotalBytes uint64 `json:"total_bytes"`
	Driver     Level  `json:"driver"`
	Framework  Level  `json:"framework"`
	// what the framework's allocator holds from the driver
	ReservedBytesCurrent uint64      `json:"reserved_bytes_current"`
	ReservedBytesPeak    uint64      `json:"reserved_bytes_peak"`
	Reported             *Counter    `json:"reported"` // nil if the framework reports no counters
	Sizes                DeviceSizes `json:"sizes"`

	// What is certain where records were lost; nil where none were.
	ReservedBytesCurrentLower *uint64 `json:"reserved_bytes_current_lower,omitempty"`
	ReservedBytesPeakLower    *uint64 `json:"reserved_bytes_peak_lower,omitempty"`
}

// Counter holds the framework's own words about its allocator: the last ones and the highest ones.
type Counter struct {
	AllocatedBytes     uint64 `json:"allocated_bytes"`
	AllocatedBytesPeak uint64 `json:"allocated_bytes_peak"`
	ReservedBytes      uint64 `json:"reserved_bytes"`
	ReservedBytesPeak  uint64 `json:"reserved_bytes_peak"`
}

// Group divides one level by one grouping. Its rows add up to the level.
type Group struct {
	By     string `json:"by"`
	Level  string `json:"level"`  // "framework" or "driver"
	Device string `json:"device"` // "all", or the devices that the summary was restricted to
	Rows   []Row  `json:"rows"`   // largest share of the peak first
}

// Row is one key of a group. PeakBytes is the key's share at the moment of the level's peak, not its own maximum.
type Row struct {
	Key        string `json:"key"`
	Label      string `json:"label,omitempty"` // for people, where the key alone says too little
	PeakBytes  uint64 `json:"peak_bytes"`
	LiveBytes  uint64 `json:"live_bytes"`
	AllocCount uint64 `json:"alloc_count"`
	FreeCount  uint64 `json:"free_count"`
	AllocBytes uint64 `json:"alloc_bytes"`

	// What is certain where records were lost; nil where none were.
	PeakBytesLower *uint64 `json:"peak_bytes_lower,omitempty"`
	LiveBytesLower *uint64 `json:"live_bytes_lower,omitempty"`

	// As of a Level.
	RequestedAtPeak *Requested `json:"requested_at_peak,omitempty"`
	RequestedLive   *Requested `json:"requested_live,omitempty"`
}

// Title returns what people read: the label, or the key.
func (r Row) Title() string {
	if r.Label != "" {
		return r.Label
	}
	return r.Key
}

// LifetimeHist tells how long a level's blocks lived.
type LifetimeHist struct {
	FreedCount     uint64           `json:"freed_count"`
	TemporaryCount uint64           `json:"temporary_count"` // freed by the next allocation or free of the same thread
	TemporaryBytes uint64           `json:"temporary_bytes"`
	Buckets        []LifetimeBucket `json:"buckets"` // by powers of ten, empty ones at both ends left out
}

// LifetimeBucket counts blocks that lived at least a tenth of BelowNS and less than BelowNS; the first one counts from
// zero.
type LifetimeBucket struct {
	BelowNS uint64 `json:"below_ns"`
	Count   uint64 `json:"count"`
	Bytes   uint64 `json:"bytes"`
}

// Mark is a named moment. A name that was set more than once has its last values.
type Mark struct {
	Name           string `json:"name"`
	Count          uint64 `json:"count"`
	FirstTimeNS    int64  `json:"first_time_ns"`
	LastTimeNS     int64  `json:"last_time_ns"`
	DriverBytes    uint64 `json:"driver_live_bytes"`
	FrameworkBytes uint64 `json:"framework_live_bytes"`

	// What is certain where records were lost; nil where none were.
	DriverBytesLower    *uint64 `json:"driver_live_bytes_lower,omitempty"`
	FrameworkBytesLower *uint64 `json:"framework_live_bytes_lower,omitempty"`
}

// Iterations sums up the steps or epochs that the program announced.
type Iterations struct {
	Count       uint64 `json:"count"`
	FirstNumber uint64 `json:"first_number"`
	LastNumber  uint64 `json:"last_number"`
	FirstTimeNS int64  `json:"first_time_ns"`
	LastTimeNS  int64  `json:"last_time_ns"`
}

// Moment is the state at the moment that Question.At names.
type Moment struct {
	What      string         `json:"what"`
	TimeNS    int64          `json:"time_ns"`
	Driver    MomentLevel    `json:"driver"`
	Framework MomentLevel    `json:"framework"`
	Devices   []MomentDevice `json:"devices"`
	Groups    []MomentGroup  `json:"groups"`

	BeforeLoss bool `json:"before_loss,omitempty"` // records were lost, but after this moment: its figures are exact
}

// MomentLevel is what was live.
type MomentLevel struct {
	LiveBytes uint64 `json:"live_bytes"`
	// what is certain where records were lost; nil where none were
	LiveBytesLower *uint64 `json:"live_bytes_lower,omitempty"`

	Requested *Requested `json:"requested,omitempty"` // as of a Level
}

// MomentDevice is what was live on one device.
type MomentDevice struct {
	Index         int16       `json:"index"`
	Driver        MomentLevel `json:"driver"`
	Framework     MomentLevel `json:"framework"`
	ReservedBytes uint64      `json:"reserved_bytes"`
}

// MomentGroup divides what was live; rows without bytes are left out.
type MomentGroup struct {
	By    string      `json:"by"`
	Level string      `json:"level"`
	Rows  []MomentRow `json:"rows"`
}

// MomentRow is one key.
type MomentRow struct {
	Key       string `json:"key"`
	Label     string `json:"label,omitempty"`
	LiveBytes uint64 `json:"live_bytes"`

	// what is certain where records were lost; nil where none were
	LiveBytesLower *uint64 `json:"live_bytes_lower,omitempty"`

	Requested *Requested `json:"requested,omitempty"` // as of a Level
}

// Torn is damage inside of a trace: what lies behind it was read.
type Torn struct {
	Stretches uint64 `json:"stretches"`
	Bytes     int64  `json:"bytes"`
	At        int64  `json:"at"` // offset of the first
	Reason    string `json:"reason"`
	Records   uint64 `json:"lost_records"` // that stood in them; lost_records of the report counts them, too
}

// Health says how far the numbers can be trusted.
type Health struct {
	Complete bool `json:"complete"` // nothing lost, cut or repaired
	// the file is cut or damaged; what stands before TruncatedAt was read
	Truncated       bool   `json:"truncated"`
	TruncatedAt     int64  `json:"truncated_at"`     // offset in the file
	TruncatedReason string `json:"truncated_reason"` // "" unless truncated
	// why the last records may be missing: the run has no end, and no spool continues it; "" if it has
	NoEnd string `json:"no_end,omitempty"`
	// stretches that could not be read, with readable ones behind them; nil: none
	Damaged *Torn `json:"damaged,omitempty"`
	// offset of damage that the trace's own check bytes made good; 0: none
	RestoredAt int64 `json:"restored_at,omitempty"`
	// why the sections before the end are not those that were written; "" if they are
	Altered         string `json:"altered"`
	Bytes           int64  `json:"bytes_read"`
	Events          uint64 `json:"events"`
	LateEvents      uint64 `json:"late_events"`
	UnknownEvents   uint64 `json:"unknown_events"`   // of kinds that this version does not know
	SkippedSections uint64 `json:"skipped_sections"` // of kinds that this version does not know
	// order numbers that no event has and that no call in flight explains
	SequenceGaps   uint64 `json:"sequence_gaps"`
	RepeatedEvents uint64 `json:"repeated_events"` // events with the order number of another one
	// calls that had drawn a number and not returned at the end; no fault
	InFlightCalls  uint64 `json:"in_flight_calls"`
	LostRings      uint64 `json:"lost_threads"` // threads that could not be recorded
	LostDictionary uint64 `json:"lost_dictionary_entries"`

	UnmatchedFrees      uint64 `json:"unmatched_frees"`
	UnmatchedMaps       uint64 `json:"unmatched_maps"`
	DisplacedBlocks     uint64 `json:"displaced_blocks"`
	LateFrees           uint64 `json:"late_frees"`
	LateAllocs          uint64 `json:"late_allocs"`
	FailedFrees         uint64 `json:"failed_frees"`
	ImplausibleSizes    uint64 `json:"implausible_sizes"`
	UnmatchedReferences uint64 `json:"unmatched_references"`
	// blocks that ended with their context, graph or module; no fault
	ImplicitFrees  uint64 `json:"implicit_frees"`
	EstimatedSizes uint64 `json:"estimated_sizes"` // allocations whose size the recorder computed
	RuntimeOnly    uint64 `json:"runtime_only"`    // allocations seen at the runtime's surface only
	// framework events at which its reserved bytes were not the driver bytes seen
	ReservedMismatches uint64 `json:"reserved_mismatches"`
	// framework events at which its allocated bytes were not the blocks seen
	AllocatedMismatches uint64   `json:"allocated_mismatches"`
	ReservedFrom        string   `json:"reserved_from"` // "driver", "reports" or ""
	Unseen              []string `json:"unseen"`        // ways to memory that the recorder could not watch

	Stacks         StackHealth `json:"stacks"`
	SymbolProblems []string    `json:"symbol_problems"` // what kept code addresses from being named, and what to do
}

// Group returns the group of a level by name, nil if it is not in the summary.
func (s *Summary) Group(by, level string) *Group {
	for i := range s.Groups {
		if s.Groups[i].By == by && s.Groups[i].Level == level {
			return &s.Groups[i]
		}
	}
	return nil
}

// Ledger returns the ledger of a grouping, nil if it is not in the summary.
func (s *Summary) Ledger(by string) *Ledger {
	return ledgerBy(s.Ledgers, by)
}

// CategoriesBy returns the categories of a grouping, nil if it is not made of rules.
func (s *Summary) CategoriesBy(by string) *Categories { return categoriesBy(s.Categories, by) }

func categoriesBy(list []Categories, by string) *Categories {
	if i := slices.IndexFunc(list, func(c Categories) bool { return c.By == by }); i >= 0 {
		return &list[i]
	}
	return nil
}

// MainLevel names the level that reports put first: the framework's if it reported blocks, else the driver's.
func (s *Summary) MainLevel() string {
	if !s.Framework.Empty() {
		return LevelFramework
	}
	return LevelDriver
}

// Main returns the level that MainLevel names.
func (s *Summary) Main() Level {
	if !s.Framework.Empty() {
		return s.Framework
	}
	return s.Driver
}

// HasKeys reports whether the main level has rows in a grouping beside the one of what is not known.
func (s *Summary) HasKeys(by, unknown string) bool {
	group := s.Group(by, s.MainLevel())
	return group != nil && slices.ContainsFunc(group.Rows, func(r Row) bool { return r.Key != unknown })
}

// At is a level whose peak is what was live at a moment.
func (l Level) At(m MomentLevel) Level {
	l.PeakBytes, l.PeakBytesLower = m.LiveBytes, m.LiveBytesLower
	return l
}

// ParameterCopies are blocks of one place without a name that outlast a pass, and are as large as all parameters.
type ParameterCopies struct {
	Site  string `json:"site"`
	Bytes uint64 `json:"bytes"`
	Count uint64 `json:"count"` // how many times the parameters
}
