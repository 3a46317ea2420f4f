package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/diff"
	"memtrace/internal/render"
	"memtrace/internal/render/layout"
)

// Trace is what a gate is held against.
type Trace struct {
	Path     string
	Summary  *report.Summary
	Findings []report.Finding

	again   Again
	when    string             // owners count "at mark:wake"; "": each at its own highest
	highest map[Subject]figure // that were measured
}

// Again reads a trace once more, with several questions in one reading. It is nil of a JSON report and of a profile,
// which answer none.
type Again func(asks ...func(o *analyzer.Options)) ([]*report.Summary, error)

// one asks one question.
func (a Again) one(ask func(o *analyzer.Options)) (*report.Summary, error) {
	list, err := a(ask)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// NewTrace makes one of a summary. One with a moment is checked at that moment instead of at the peaks.
func NewTrace(path string, s *report.Summary, again Again) *Trace {
	return newTrace(path, s, render.Findings(s), again)
}

func newTrace(path string, s *report.Summary, findings []report.Finding, again Again) *Trace {
	t := &Trace{Path: path, Summary: atMoment(s), Findings: findings, again: again}
	if s.At != nil {
		t.when = "at " + s.At.What
	}
	return t
}

func atMoment(s *report.Summary) *report.Summary {
	if s.At == nil {
		return s
	}
	s = diff.AtMoment(s)
	s.Framework.RequestedAtPeak = s.At.Framework.Requested
	return s
}

// IsJSON reports whether a file that begins with these bytes is JSON.
func IsJSON(begin []byte) bool {
	begin = bytes.TrimLeft(begin, " \t\r\n\xef\xbb\xbf")
	return len(begin) > 0 && (begin[0] == '{' || begin[0] == '[')
}

// document is a report of `memtrace report --json`, as far as gates need it.
type document struct {
	Schema   string           `json:"schema"`
	Findings []report.Finding `json:"findings"`
	*report.Summary
}

// ParseReport reads a JSON report.
func ParseReport(path string, text []byte) (*Trace, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("%s: not a JSON report of one trace: %w", path, err)
	}
	if d.Schema != render.ReportSchema || d.Summary == nil {
		return nil, fmt.Errorf("%s: not a trace, nor what 'memtrace report --json' writes: its schema is %q", path,
			d.Schema)
	}
	return newTrace(path, d.Summary, d.Findings, nil), nil
}

// doubtful are findings by which a trace lacks a part of the program's memory.
var doubtful = []string{"bypassed", "unknown-calls", "started-late", "snapshot", "nothing-allocated"}

// Incomplete says why a trace may not hold all that the program did, "" if it does: of such a trace, that a gate holds
// proves nothing.
func (t *Trace) Incomplete() string {
	s := t.Summary
	p := &s.Process
	switch {
	case !s.Health.Complete:
		return strings.TrimPrefix(layout.Health(s.Health, s.LostRecords), "INCOMPLETE: ")
	case p.Ended == report.EndedRunning:
		return "the program still runs"
	case p.Ended == report.EndedUnknown:
		return "how the program ended is unknown: the trace lacks its end"
	case p.Ended == report.EndedKilled && p.Signal != "":
		return "the program was ended by " + p.Signal
	case p.Ended == report.EndedKilled:
		return "the program was killed"
	case p.ExitStatus != nil && *p.ExitStatus != 0:
		return fmt.Sprintf("the program failed with exit status %d", *p.ExitStatus)
	case p.Stopped != "":
		return "recording was stopped by " + p.Stopped + " before the program ended"
	case p.BeganAfterNS > 0:
		return "recording began " + layout.Duration(p.BeganAfterNS) + " after the program"
	}
	for _, f := range t.Findings {
		if slices.Contains(doubtful, f.ID) {
			return strings.TrimSuffix(f.Text, ".")
		}
	}
	return ""
}

// program names the program of a process: its script, or else its executable.
func program(p *report.Process) string {
	args := p.Args
	if len(args) == 0 {
		args = strings.Fields(p.Command)
	}
	if len(args) == 0 {
		return filepath.Base(p.Exe)
	}
	name := filepath.Base(args[0])
	if !strings.HasPrefix(name, "python") {
		return name
	}
	for i, arg := range args[1:] {
		switch {
		case arg == "-m" && i+2 < len(args):
			return args[i+2]
		case arg == "-c":
			return name
		case !strings.HasPrefix(arg, "-"):
			return filepath.Base(arg)
		}
	}
	return name
}

// devices describes the devices that were used.
func devices(s *report.Summary) string {
	var names []string
	for i := range s.Devices {
		if d := &s.Devices[i]; d.Index >= 0 && (!d.Driver.Empty() || !d.Framework.Empty()) {
			names = append(names, layout.Device(*d, s.NullGPU))
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "no device"
	}
	return strings.Join(names, "; ")
}
