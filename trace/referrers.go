package trace

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// MaxReferrerRows is how many holders a text may have.
const MaxReferrerRows = 256

// Referrers is what refers to PyTorch's tensors in a process.
type Referrers struct {
	Tensors uint64 // that there are on devices
	Late    bool   // it was cut short
	// a backward pass was under way, so that it did not look at what autograd graphs keep, nor at gradients
	GraphsUnread bool
	LeftOut      uint64 // rows beyond the limit
	Bytes        uint64 // of all their storages, each counted once
	Visits       uint64 // references that were followed
	Holders      []Holder
}

// Holder is tensors that are reached in the same way, as memtrace.Holder of the Python package has it.
type Holder struct {
	Path    string `json:"path"`
	Types   string `json:"types"`
	Tensors uint64 `json:"tensors"`
	Bytes   uint64 `json:"bytes"` // of their storages, each counted once
	// of it, what is no element of these tensors, which are views of larger storages; 0 where the recording does not
	// have it
	HiddenBytes uint64   `json:"hidden_bytes,omitempty"`
	Shape       []uint64 `json:"shape"` // of the largest
	DType       string   `json:"dtype"`
	Device      string   `json:"device"` // OnHost: in pinned host memory
	GraphNodes  uint64   `json:"graph_nodes"`
	GraphBytes  uint64   `json:"graph_bytes"` // that its nodes have saved; 0 where PyTorch does not report it
	// what the nodes have computed, where it does not
	GraphOutputs uint64   `json:"-"`
	Garbage      bool     `json:"garbage"` // only unreachable objects refer to them
	Storages     []uint64 `json:"-"`       // addresses

	// what ends with this way, as no other way leads to it; false where the recording does not have it
	EndsKnown   bool   `json:"-"`
	EndsBytes   uint64 `json:"-"` // storages, those that graphs have saved among them where PyTorch reports it
	EndsOutputs uint64 `json:"-"` // of GraphOutputs
	EndsSurely  bool   `json:"-"` // otherwise it is the most
	// its graph is of a pass before the latest; false where the recording does not have it
	Earlier bool `json:"-"`
}

// OnHost is the Device of tensors in pinned host memory.
const OnHost = "cpu"

var errSenseless = errors.New("this is not what the library writes about referrers")

// How many fields a line has, and had before it said what tensors do not show, whether a graph is of an earlier pass,
// and what ends with a way.
const (
	holderFields        = 17
	holderFieldsToPass  = 16
	holderFieldsToEnds  = 15
	holderFieldsAtFirst = 12
)

// ParseReferrers reads lines of fields that tabs divide, the largest holder first.
func ParseReferrers(text string) (*Referrers, error) {
	first, rows, ends := strings.Cut(text, "\n")
	fields := newFields(first, 5)
	found := &Referrers{Tensors: fields.number(0), Late: fields.number(1)&1 != 0,
		GraphsUnread: fields.number(1)&2 != 0, LeftOut: fields.number(2), Bytes: fields.number(3),
		Visits: fields.number(4)}
	for line := range strings.Lines(rows) {
		line, whole := strings.CutSuffix(line, "\n")
		f := newFields(line, holderFields, holderFieldsToPass, holderFieldsToEnds, holderFieldsAtFirst)
		count := len(f.words)
		h := Holder{
			Bytes: f.number(0), Tensors: f.number(1), GraphNodes: f.number(2), GraphBytes: f.number(3),
			GraphOutputs: f.number(4), Garbage: f.number(5) != 0, DType: f.text(6), Shape: f.list(7, 10),
			Device: f.text(8), Path: f.text(9), Types: f.text(10), Storages: f.list(11, 16),
			EndsKnown: count > holderFieldsAtFirst,
		}
		if h.EndsKnown {
			h.EndsBytes, h.EndsOutputs, h.EndsSurely = f.number(12), f.number(13), f.number(14) != 0
		}
		if count > holderFieldsToEnds {
			h.Earlier = f.number(15) != 0
		}
		if count > holderFieldsToPass {
			h.HiddenBytes = f.number(16)
		}
		found.Holders = append(found.Holders, h)
		if f.bad || !whole || len(found.Holders) > MaxReferrerRows {
			return nil, errSenseless
		}
	}
	if fields.bad || !ends {
		return nil, errSenseless
	}
	return found, nil
}

// fields are those of a line.
type fields struct {
	words []string
	bad   bool // the line is not what it should be
}

// newFields divides a line, which must have one of these counts of fields.
func newFields(line string, counts ...int) *fields {
	f := &fields{words: strings.Split(line, "\t")}
	f.bad = !slices.Contains(counts, len(f.words))
	return f
}

func (f *fields) text(n int) string {
	if f.bad {
		return ""
	}
	return f.words[n]
}

func (f *fields) number(n int) uint64 { return f.parse(f.text(n), 10) }

func (f *fields) parse(text string, base int) uint64 {
	number, err := strconv.ParseUint(text, base, 64)
	f.bad = f.bad || err != nil
	return number
}

// list reads numbers that commas divide.
func (f *fields) list(n, base int) []uint64 {
	numbers := []uint64{}
	if text := f.text(n); text != "" {
		for one := range strings.SplitSeq(text, ",") {
			numbers = append(numbers, f.parse(one, base))
		}
	}
	return numbers
}
