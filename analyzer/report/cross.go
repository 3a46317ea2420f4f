package report

import (
	"cmp"
)

// Cross divides what was held at the ledgers' moment by two groupings at once. Cells add up to their rows and columns,
// and these to the whole.
type Cross struct {
	By         [2]string     `json:"by"` // of the rows and of the columns
	Level      string        `json:"level"`
	Moment     string        `json:"moment"` // "peak", or the requested moment
	TimeNS     int64         `json:"time_ns"`
	WholeBytes uint64        `json:"whole_bytes"` // held by blocks of the level
	Columns    []CrossColumn `json:"columns"`     // most first
	Rows       []CrossRow    `json:"rows"`        // most first
}

// CrossColumn is one key of the second grouping.
type CrossColumn struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	Bytes uint64 `json:"bytes"`
}

// CrossRow is one key of the first grouping.
type CrossRow struct {
	Key   string   `json:"key"`
	Label string   `json:"label,omitempty"`
	Bytes uint64   `json:"bytes"`
	Cells []uint64 `json:"cells"` // by column
}

// Title returns the displayed text: the label, or the key.
func (c *CrossColumn) Title() string { return cmp.Or(c.Label, c.Key) }

// Title returns the displayed text: the label, or the key.
func (r *CrossRow) Title() string { return cmp.Or(r.Label, r.Key) }
