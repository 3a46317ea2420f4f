package trace

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
	// Health says what was read and what is missing.
	Health() Health
	// Lost returns what the recorder itself had to drop: records, whole rings, dictionary entries.
	Lost() (records, rings, dict uint64)
}

// FieldSparer is a Source that can spare itself the decoding of fields that nobody asks for.
type FieldSparer interface {
	// LeaveOut says that these fields are of no use: in events of later batches they are zero, or hold their values. It
	// may be called again and again, between batches.
	LeaveOut(fields ...Field)
}

// ColumnSource is a Source that hands out events column by column, for those who look at millions of them.
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
