package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"memtrace/trace"
)

// When the library looks for what refers to tensors by itself.
const (
	KeptAtOOM = "oom" // when PyTorch's allocator gave up for the first time
	KeptAtEnd = "end" // before the interpreter ended, where memory had grown
)

// KeptBy is what the library found about who refers to PyTorch's tensors, without being asked.
type KeptBy struct {
	Occasion   string `json:"occasion,omitempty"` // "oom" or "end"; "" where it was skipped
	Skipped    string `json:"skipped,omitempty"`  // why it was
	DurationNS int64  `json:"duration_ns,omitempty"`
	Late       bool   `json:"late,omitempty"`     // it was cut short
	Tensors    uint64 `json:"tensors,omitempty"`  // on devices
	LeftOut    uint64 `json:"left_out,omitempty"` // holders for which there was no room
	Holders    []Kept `json:"holders,omitempty"`  // what is freed with each, the most first
}

// Kept is tensors that are reached in the same way, and what is freed when that way ends, unless other holders have it
// as well.
type Kept struct {
	trace.Holder
	// what they are known or thought to keep in autograd graphs; FreesAbout says that it is thought
	FreesBytes uint64 `json:"frees_bytes"`
	FreesAbout bool   `json:"frees_about,omitempty"`
}

// KeptByOf reads what a recording has of it; nil where there was nothing to look for. allocated is what the framework
// had in blocks then, 0 unknown: what no tensor of Python's accounts for is what graphs have saved, where PyTorch does
// not say so itself.
func KeptByOf(info trace.Info, allocated uint64) *KeptBy {
	if why := info[trace.ReferrersSkippedKey]; why != "" {
		return &KeptBy{Skipped: why}
	}
	first, text, _ := strings.Cut(info[trace.ReferrersKey], "\n")
	occasion, nanoseconds, _ := strings.Cut(first, "\t")
	found, err := trace.ParseReferrers(text)
	duration, bad := strconv.ParseInt(nanoseconds, 10, 64)
	if err != nil || bad != nil || (occasion != KeptAtOOM && occasion != KeptAtEnd) {
		return nil
	}
	k := &KeptBy{Occasion: occasion, DurationNS: duration, Late: found.Late, Tensors: found.Tensors,
		LeftOut: found.LeftOut}
	k.Holders = KeptOf(found.Holders, allocated-min(allocated, found.Bytes))
	return k
}

// KeptOf lists holders by what is freed with each, the most first. saved is at most how many bytes their graphs have
// saved, where PyTorch does not say it.
func KeptOf(holders []trace.Holder, saved uint64) (list []Kept) {
	var outputs uint64
	for _, h := range holders {
		outputs += h.GraphOutputs
	}
	for _, h := range holders {
		row := Kept{Holder: h, FreesBytes: h.Bytes + h.GraphBytes}
		if h.GraphBytes == 0 && h.GraphOutputs > 0 && saved > 0 {
			row.FreesBytes += min(uint64(float64(saved)*float64(h.GraphOutputs)/float64(outputs)), h.GraphOutputs)
			row.FreesAbout = true
		}
		list = append(list, row)
	}
	slices.SortStableFunc(list, func(a, b Kept) int { return cmp.Compare(b.FreesBytes, a.FreesBytes) })
	return list
}

// FirstFailure is when the framework's allocator first gave up, which KeptBy with KeptAtOOM is of; nil where it never
// did.
func (s *Summary) FirstFailure() *OOMEvent {
	for i := range s.OOM.Events {
		if e := &s.OOM.Events[i]; e.Level == "framework" && e.Outcome == OOMFailed {
			return e
		}
	}
	return nil
}

// AllocatedAtOOM is what the framework had in blocks then; 0 where its allocator never gave up.
func (s *Summary) AllocatedAtOOM() uint64 {
	if e := s.FirstFailure(); e != nil {
		return e.AllocatedBytes
	}
	return 0
}
