package trace

import "memtrace/internal/section"

// Source is what the analyzer reads: a trace file, or a trace file together with the records that its process left in a
// spool.
type Source interface {
	// ReadBatch returns the next events, at least one, valid until the next call. It returns io.EOF at the end of what
	// can be read, and any other error only when reading the underlying file failed.
	ReadBatch() ([]Event, error)
	// Tables returns the dictionary as far as it was read; it holds every entry that the events returned so far refer
	// to.
	Tables() *Tables
	// Info returns what is known about the run. The caller must not change it.
	Info() Info
	// End returns the clean end, ok=false before it was read and in a killed run.
	End() (end End, ok bool)
	// Health reports what was read and what is missing.
	Health() Health
	// Lost returns what the recorder itself had to drop: records, whole rings, dictionary entries.
	Lost() (records, rings, dict uint64)
}

// Projector is a Source that need not decode fields that no reader needs.
type Projector interface {
	// Skip names fields that are not needed: in later batches they are zero or hold their values. It may be called
	// repeatedly, between batches.
	Skip(fields ...Field)
}

// Unended is a Source that may have no End.
type Unended interface {
	// Ending returns the facts that follow the last event where there is no end section, or nil.
	Ending() Info
}

// ColumnSource is a Source that returns events column by column, for readers of millions of them.
type ColumnSource interface {
	// ReadColumns is ReadBatch for columns. Which of the two is called may change from call to call.
	ReadColumns() (*Batch, error)
}

// BlockSource is a Source that knows which block of the file its last batch came from.
type BlockSource interface {
	CurrentBlock() (number, watermark uint64)
}

// CurrentBlock implements BlockSource.
func (r *Reader) CurrentBlock() (number, watermark uint64) { return r.health.Blocks, r.block.watermark }

// Health is how complete the part of a trace is that was read so far. Reading on may change it; it is final once
// ReadBatch has returned io.EOF.
type Health struct {
	Truncated       bool             // the file is cut or damaged; everything before TruncatedAt was read
	TruncatedAt     int64            // offset of the first section that could not be used
	Reason          string           // why, in words; empty unless Truncated
	Torn            section.Torn     // stretches of damage that were passed over; what follows was read
	Restored        section.Restored // damage that was made good
	Sections        uint64           // sections read, skipped ones included
	SkippedSections uint64           // sections of a kind that this version does not know
	Blocks          uint64           // event blocks read
	Events          uint64           // events returned
	UnknownEvents   uint64           // events of a kind that this version does not know; they are not returned
	LateEvents      uint64           // events that are later in the file than their order number
	Bytes           int64            // bytes of the file that were read as whole sections, head included
	// bytes after the end section that could not be read as sections; -1 if there are some and the size is unknown
	Trailing int64
	Epilogue string // why they could not, in words; empty if there are none
	Repeated uint64 // events whose order number another one had before
	// why what precedes the end is not what was written there, in words; empty if it is, or if unknown
	Altered string
	// order numbers that were drawn, as far as is known, that no event has and that no call in flight explains
	Gaps uint64
	// order numbers of calls that had not returned at the end: no event will ever have them, and nothing is lost with
	// them
	InFlight uint64
	MaxSeq   uint64 // highest order number seen
	// why the run's last records may be missing although nothing is damaged, in words: it has no end, and no spool
	// continues it. Empty if it has, and where no spool was looked for.
	NoEnd string
}
