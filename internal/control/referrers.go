package control

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Limits of what a process may say.
const (
	MostRows     = 256
	MostPatience = 30 * time.Second
	mostText     = 1 << 20 // bytes of rows
)

// Referrers is what refers to PyTorch's tensors in a process.
type Referrers struct {
	Tensors uint64   // that there are on devices; the 256 largest are looked at
	Late    bool     // time ran out before all objects on the way had been looked at
	LeftOut uint64   // rows for which there was no room
	Holders []Holder // the largest first
	Seq     uint64   // the order number in the process's trace at which those tensors were live; 0 without a recording
}

// Holder is tensors that are reached in the same way, as memtrace.Holder of the Python package has it.
type Holder struct {
	Path       string   `json:"path"`
	Types      string   `json:"types"`
	Tensors    uint64   `json:"tensors"`
	Bytes      uint64   `json:"bytes"` // of their storages, each counted once
	Shape      []uint64 `json:"shape"` // of the largest
	DType      string   `json:"dtype"`
	Device     string   `json:"device"`
	GraphNodes uint64   `json:"graph_nodes"`
	GraphBytes uint64   `json:"graph_bytes"`
	Storages   []uint64 `json:"-"` // addresses
}

// FindReferrers has a process look for at most so many holders; wait is how long its interpreter may be busy. Both must
// be within the limits. The answer is that of Ask.
func FindReferrers(pid, rows int, wait time.Duration) (Answer, *Referrers, error) {
	c, err := dial(pid)
	if err != nil {
		return Answer{}, nil, err
	}
	defer c.Close()
	answer, err := c.ask(fmt.Sprintf("referrers %d %d", rows, wait.Milliseconds()))
	if err != nil {
		return answer, nil, err
	}
	if answer.referrers == 0 || answer.referrers > mostText {
		return answer, nil, errSenseless
	}
	var text []byte
	for uint64(len(text)) < answer.referrers {
		part, err := c.packet()
		if err != nil {
			return answer, nil, err
		}
		text = append(text, part...)
	}
	found, err := parseReferrers(string(text))
	if err != nil || uint64(len(text)) > answer.referrers {
		return answer, nil, errSenseless
	}
	found.Seq = answer.seq
	return answer, found, nil
}

var errSenseless = errors.New("the process's answer makes no sense; are command and library of one version?")

// parseReferrers reads lines of fields that tabs divide (cshim/process/control.h).
func parseReferrers(text string) (*Referrers, error) {
	first, rows, ends := strings.Cut(text, "\n")
	fields := newFields(first, 3)
	found := &Referrers{Tensors: fields.number(0), Late: fields.number(1) != 0, LeftOut: fields.number(2)}
	for line := range strings.Lines(rows) {
		line, whole := strings.CutSuffix(line, "\n")
		f := newFields(line, 10)
		found.Holders = append(found.Holders, Holder{
			Bytes: f.number(0), Tensors: f.number(1), GraphNodes: f.number(2), GraphBytes: f.number(3),
			DType: f.text(4), Shape: f.list(5, 10),
			Device: f.text(6), Path: f.text(7), Types: f.text(8), Storages: f.list(9, 16),
		})
		if f.bad || !whole || len(found.Holders) > MostRows {
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

func newFields(line string, count int) *fields {
	f := &fields{words: strings.Split(line, "\t")}
	f.bad = len(f.words) != count
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
