// Package runprofile has the profile of a run: what a report and a comparison of many ranks need of a trace, in some
// kilobytes. It reads and writes the file, and answers the questions that need no events.
//
// A profile has a head, which is small enough to read a thousand of, and a body. Sizes are bytes, times nanoseconds
// since the trace's time base.
package runprofile

import (
	"memtrace/analyzer/report"
)

// Suffix ends the name of a profile.
const Suffix = ".mtp"

// Profile is what is kept of a trace.
type Profile struct {
	Head report.Head
	Body Body
}

// Body is the rest.
type Body struct {
	Summary *report.Summary `json:"summary"` // the report, with the groupings of By and of Extra
	By      []string        `json:"by"`      // groupings that a report has if none are asked for
	Rules   string          `json:"rules"`   // name of the rules that categories are of
	Own     []string        `json:"own"`     // analyzer.Options.Own
	Hidden  hidden          `json:"hidden"`  // what the JSON of a summary leaves out
	Moments []Moment        `json:"moments"`
	Stacks  Stacks          `json:"stacks"`
	Names   []string        `json:"names"` // that cells refer to
}

// Moment is what was live at one moment, by level, category, module and call stack.
type Moment struct {
	What   string `json:"what"` // "peak", "teardown", "exit", "oom", or "mark:" and a name
	Level  string `json:"level"`
	TimeNS int64  `json:"time_ns"`
	Cells  Cells  `json:"cells"`
}

// MaxCells bounds the cells of a moment. The smaller ones beyond it are one cell without a stack.
const MaxCells = 1024

// Cells is a table, largest first.
type Cells struct {
	Category []int    `json:"category"` // index in Body.Names
	Module   []int    `json:"module"`   // the same
	Stack    []int    `json:"stack"`    // index in Body.Stacks; -1: none
	Bytes    []uint64 `json:"bytes"`
}

// hidden are fields of report.Summary that its JSON does not have.
type hidden struct {
	Limits   []report.Finding     `json:"limits"`
	Function *report.VerdictShare `json:"function,omitempty"`
	Deep     bool                 `json:"function_deep,omitempty"`
	Idle     *report.IdleMemory   `json:"idle,omitempty"`
}

// hide takes the hidden fields out of a summary.
func hide(s *report.Summary) (h hidden) {
	h.Limits, h.Function, h.Idle = s.Limits, s.Function, s.IdleAtPeak
	if h.Function != nil {
		h.Deep = h.Function.Deep
	}
	return h
}

// restore puts them back.
func (h *hidden) restore(s *report.Summary) {
	s.Limits, s.Function, s.IdleAtPeak = h.Limits, h.Function, h.Idle
	if s.Function != nil {
		s.Function.Deep = h.Deep
	}
}
