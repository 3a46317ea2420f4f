package trace

import "memtrace/trace/section"

// Health says how complete the part of a trace is that was read so far. Reading on may change it; it is final once
// ReadBatch has returned io.EOF.
type Health struct {
	Truncated       bool             // the file is cut or damaged; everything before TruncatedAt was read
	TruncatedAt     int64            // offset of the first section that could not be used
	Reason          string           // why, in words; empty unless Truncated
	Torn            section.Torn     // stretches of damage that were passed over; what is behind them was read
	Restored        section.Restored // damage that was made good
	Sections        uint64           // sections read, skipped ones included
	SkippedSections uint64           // sections of a kind that this version does not know
	Blocks          uint64           // event blocks read
	Events          uint64           // events returned
	UnknownEvents   uint64           // events of a kind that this version does not know; they are not returned
	LateEvents      uint64           // events that stand later in the file than their order number says
	Bytes           int64            // bytes of the file that were read as whole sections, head included
	Trailing        int64            // bytes behind the end section that could not be read as sections; -1 if there are some and the size is unknown
	Epilogue        string           // why they could not, in words; empty if there are none
	Repeated        uint64           // events whose order number another one had before
	Altered         string           // why what stands before the end is not what was written there, in words; empty if it is, or if nothing tells
	Gaps            uint64           // order numbers that were drawn, as far as is known, that no event has and that no call in flight explains
	InFlight        uint64           // order numbers of calls that had not returned at the end: no event will ever have them, and nothing is lost with them
	MaxSeq          uint64           // highest order number seen
}
