package report

import (
	"cmp"
	"strings"
)

// Division is the parts of the memory of one place in the program that holds most of a level: the line that calls a
// library's training loop, say, does not show what the memory is for. Its rows and the rest add up to Bytes.
type Division struct {
	Site       string        `json:"site"` // key of the place, without "backward of"
	User       bool          `json:"user"` // the place is the program's own code
	Level      string        `json:"level"`
	Bytes      uint64        `json:"bytes"`       // held by the place and by the backward pass of what it called
	WholeBytes uint64        `json:"whole_bytes"` // held by all blocks of the level
	By         string        `json:"by"`          // "module", "inner", "operator": the best grouping; or ByCaller
	Rows       []DivisionRow `json:"rows"`        // most first
	RestCount  uint64        `json:"rest_count"`  // rows that are not listed
	RestBytes  uint64        `json:"rest_bytes"`
}

// ByCaller is By of a division by the program's lines that called the place. It is not a grouping.
const ByCaller = "caller"

// CompiledPrefix begins the name of operators that PyTorch's compiler made one kernel of.
const CompiledPrefix = "compiled: "

// Compiled reports whether most of the place's memory is allocated by compiled code.
func (d *Division) Compiled() bool { return d.By == "operator" && CompiledBytes(d.Rows) > d.Bytes/2 }

// CompiledBytes is what rows by operator hold that compiled code allocates.
func CompiledBytes(rows []DivisionRow) (bytes uint64) {
	for i := range rows {
		if strings.HasPrefix(rows[i].Key, CompiledPrefix) {
			bytes += rows[i].Bytes
		}
	}
	return bytes
}

// DivisionRow is one key, or several modules that differ in an index only.
type DivisionRow struct {
	Key     string `json:"key"`             // of several modules "h.{0..11}.attn"
	Label   string `json:"label,omitempty"` // displayed text, where the key is too detailed
	Known   bool   `json:"known"`           // false: the key means that there is no name
	Count   uint64 `json:"count"`           // number of modules in the key; 1 for other groupings
	Bytes   uint64 `json:"bytes"`
	EachMin uint64 `json:"each_min_bytes"` // the smallest and the largest of them
	EachMax uint64 `json:"each_max_bytes"`
	Below   bool   `json:"below"` // modules below it are part of it
	// the function outside the framework that holds at least half of the row; nil if none does
	Inner    *DivisionPart `json:"inner,omitempty"`
	Operator *DivisionPart `json:"operator,omitempty"` // the same of operators
}

// DivisionPart is the largest part of a row.
type DivisionPart struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	Bytes uint64 `json:"bytes"`
}

// Title returns the displayed text: the label, or the key.
func (r *DivisionRow) Title() string { return cmp.Or(r.Label, r.Key) }

// Title returns the displayed text: the label, or the key.
func (p *DivisionPart) Title() string { return cmp.Or(p.Label, p.Key) }
