package report

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/internal/fold"
)

// Ledger is the memory by owner at one moment. Its rows add up to the whole.
type Ledger struct {
	By         string `json:"by"`
	Level      string `json:"level"`  // which level the moment and the blocks belong to
	Moment     string `json:"moment"` // "peak", or the requested moment
	TimeNS     int64  `json:"time_ns"`
	WholeBytes uint64 `json:"whole_bytes"`
	// reserved minus allocated; negative if the framework counts more than the driver gave it
	SlackBytes int64       `json:"slack_bytes"`
	Rows       []LedgerRow `json:"rows"`
	Requested  *Requested  `json:"requested,omitempty"` // of all its blocks, as of a Level
	// of the slack: freed blocks that wait for other streams
	Waiting uint64 `json:"waiting_bytes,omitempty"`
	// records were lost, but after this moment: the rows are exact
	BeforeLoss bool `json:"before_loss,omitempty"`
}

// Kinds of ledger rows.
const (
	OwnerBlocks  = "blocks"  // blocks of the ledger's level, under their key
	OwnerSlack   = "slack"   // held by the framework's allocator, in no block
	OwnerOutside = "outside" // driver memory that the framework does not hold, under the calling library
)

// LedgerRow is one owner.
type LedgerRow struct {
	Owner string `json:"owner"`
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	Bytes uint64 `json:"bytes"`

	BytesLower *uint64 `json:"bytes_lower,omitempty"` // the certain part where records were lost; nil where none were

	Requested *Requested `json:"requested,omitempty"` // of a framework's blocks, as of a Level

	// the largest places that allocated it; only of large rows, and only with Question.Sites
	Sites []RowSite `json:"sites,omitempty"`
}

// Kinds of ledger rows that only OOM events and device ledgers have; see OwnerBlocks and its like, and OwnerRounding.
const (
	OwnerContext = "context" // the CUDA context and its code
	OwnerKept    = "kept"    // kept by the driver and the firmware
	OwnerOthers  = "others"  // held by other processes
)

// Kinds of device ledger rows beyond those of a Ledger and of an OOM event.
const (
	OwnerRounding  = "rounding"   // blocks take multiples of 512 bytes
	OwnerPoolIdle  = "pool_idle"  // held by stream-ordered pools, in no live block
	OwnerGraphPool = "graph_pool" // held for the allocation nodes of graphs
	OwnerUnlisted  = "unlisted"   // in use, but by no process that the device lists
	OwnerRemainder = "remainder"  // of this process, unexplained
)

// Largest returns the first row of an owner's kind for which keep is true.
func (l *Ledger) Largest(owner string, keep func(LedgerRow) bool) (row LedgerRow, found bool) {
	for _, r := range l.Rows {
		if r.Owner == owner && keep(r) && (!found || r.Bytes > row.Bytes) {
			row, found = r, true
		}
	}
	return row, found
}

// ledgerBy returns the ledger of a grouping; nil if there is none.
func ledgerBy(list []Ledger, by string) *Ledger {
	for i := range list {
		if list[i].By == by {
			return &list[i]
		}
	}
	return nil
}

// SeesThrough reports, for a ledger by innermost line, whether a line of the program that allocated the given bytes has
// most of the whole and the library lines that it calls are more informative, as where a trainer runs the loop.
func (l *Ledger) SeesThrough(line string, bytes, whole uint64) bool {
	own, found := l.Largest(OwnerBlocks, func(r LedgerRow) bool { return r.Key == line })
	return bytes >= whole/2 && (!found || own.Bytes < bytes/2)
}

func (l *Ledger) blockBytes() (sum uint64) {
	for _, bytes := range l.blocks().bytes {
		sum += bytes
	}
	return sum
}

// keyBytes is the bytes of keys.
type keyBytes struct {
	keys  []string
	bytes []uint64
}

// blocks are the rows of blocks, but for those with one of some keys.
func (l *Ledger) blocks(without ...string) (v keyBytes) {
	for i := range l.Rows {
		if r := &l.Rows[i]; r.Owner == OwnerBlocks && !slices.Contains(without, r.Key) {
			v.keys, v.bytes = append(v.keys, r.Key), append(v.bytes, r.Bytes)
		}
	}
	return v
}

// OwnerKey is a row of a ledger in the making.
type OwnerKey struct{ Owner, Key string }

// OwnerRows sorts what a map holds, most first.
func OwnerRows(sums map[OwnerKey]uint64) []LedgerRow {
	rows := make([]LedgerRow, 0, len(sums))
	for k, bytes := range sums {
		rows = append(rows, LedgerRow{Owner: k.Owner, Key: k.Key, Bytes: bytes})
	}
	slices.SortFunc(rows, func(a, b LedgerRow) int {
		return cmp.Or(strings.Compare(a.Owner, b.Owner), cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}

// RepeatedModules are the rows of blocks of a ledger by module, repeated modules joined, most bytes first. They add up
// to the blocks.
func (l *Ledger) RepeatedModules() []RepeatedModule {
	modules := l.blocks()
	var list []RepeatedModule
	for _, f := range fold.Modules(modules.keys, modules.bytes) {
		list = append(list, RepeatedModule{Title: f.Name, Count: len(f.Members), Bytes: f.Bytes, Smallest: f.Min,
			Largest: f.Max, Same: f.Min == f.Max, Known: f.Name != NoModule})
	}
	return list
}

// HeavyModule finds the part of a model that holds most of a ledger's blocks by module including its children, and a
// quarter of the whole; title is "" if there is none: see fold.Heaviest.
func (l *Ledger) HeavyModule(whole uint64) (title string, bytes uint64, deep bool) {
	modules := l.blocks(NoModule)
	return fold.Heaviest(modules.keys, modules.bytes, whole)
}

// RepeatedModule is one module, or several that fold.Modules joins.
type RepeatedModule struct {
	Title    string // "model.layers.{0..7}.mlp" for several
	Count    int
	Bytes    uint64 // of all together
	Smallest uint64 // of one
	Largest  uint64
	Same     bool // each holds the same bytes
	Known    bool // not NoModule
}
