package check

import (
	"encoding/json"
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// BaselineSchema names the version of baseline files.
const BaselineSchema = "memtrace.baseline/1"

// Baseline is what a run is compared with: one summary for each rank, cut down to what a difference needs.
type Baseline struct {
	Schema  string        `json:"schema"`
	Program string        `json:"program"`
	Runs    []BaselineRun `json:"runs"`

	path string
}

// BaselineRun is one process.
type BaselineRun struct {
	Rank    *int            `json:"rank,omitempty"`
	Devices string          `json:"devices"`
	Report  *report.Summary `json:"report"`
}

// rowsKept is how many rows of each grouping a baseline has.
const rowsKept = 400

// NewBaseline makes a baseline of traces.
func NewBaseline(path string, traces []*Trace) (*Baseline, error) {
	b := &Baseline{Schema: BaselineSchema, path: path}
	for _, t := range traces {
		name := program(&t.Summary.Process)
		if b.Program == "" {
			b.Program = name
		}
		if name != b.Program {
			return nil, fmt.Errorf("%s: a baseline is of one program, not of %s and %s", path, b.Program, name)
		}
		rank := t.Summary.Process.Rank
		if slices.ContainsFunc(b.Runs, func(r BaselineRun) bool { return sameRank(r.Rank, rank) }) {
			return nil, fmt.Errorf("%s: a baseline is of one run; %s is of another one, or has no rank", path, t.Path)
		}
		b.Runs = append(b.Runs, BaselineRun{rank, devices(t.Summary), cutDown(t.Summary)})
	}
	return b, nil
}

func sameRank(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// cutDown leaves out what differs from run to run, names the machine, or is large.
func cutDown(s *report.Summary) *report.Summary {
	v := &report.Summary{Versions: s.Versions, NullGPU: s.NullGPU, Driver: untimed(s.Driver),
		Framework: untimed(s.Framework), Other: map[string]report.Level{}, Health: report.Health{Complete: true}}
	v.Process = report.Process{Ended: report.EndedClean, Rank: s.Process.Rank, WorldSize: s.Process.WorldSize,
		Command: program(&s.Process)}
	for name, level := range s.Other {
		v.Other[name] = untimed(level)
	}
	for _, d := range s.Devices {
		v.Devices = append(v.Devices, report.Device{Index: d.Index, Name: d.Name, TotalBytes: d.TotalBytes,
			Driver: untimed(d.Driver), Framework: untimed(d.Framework)})
	}
	for _, g := range s.Groups {
		g.Rows = slices.Clone(g.Rows[:min(len(g.Rows), rowsKept)])
		v.Groups = append(v.Groups, g)
	}
	if l := s.Ledger("library"); l != nil {
		rows := slices.Clone(l.Rows)
		for i := range rows {
			rows[i].Sites = nil
		}
		v.Ledgers = []report.Ledger{{By: l.By, Level: l.Level, Moment: l.Moment, WholeBytes: l.WholeBytes, Rows: rows}}
	}
	if s.Training != nil {
		v.Training = &report.Training{Level: s.Training.Level, Categories: s.Training.Categories}
	}
	return v
}

func untimed(l report.Level) report.Level {
	l.PeakTimeNS = 0
	return l
}

// JSON is the file's text.
func (b *Baseline) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(b, "", " ")
	return append(text, '\n'), err
}

// ParseBaseline reads a baseline, or a JSON report as one.
func ParseBaseline(path string, text []byte) (*Baseline, error) {
	b := &Baseline{path: path}
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("%s: not a baseline: %w", path, err)
	}
	if b.Schema != BaselineSchema {
		t, err := ParseReport(path, text)
		if err != nil {
			return nil, fmt.Errorf("%s: not a baseline: its schema is %q; 'memtrace check --update' writes one", path,
				b.Schema)
		}
		return NewBaseline(path, []*Trace{t})
	}
	for i := range b.Runs {
		if b.Runs[i].Report == nil {
			return nil, fmt.Errorf("%s: not a baseline: run %d has no report", path, i)
		}
	}
	return b, nil
}

// of returns the summary that a trace is compared with.
func (b *Baseline) of(t *Trace, others int) (*report.Summary, error) {
	s := t.Summary
	if name := program(&s.Process); name != b.Program {
		return nil, fmt.Errorf("%s is of another program, %s; this is %s; --update replaces it", b.path, b.Program, name)
	}
	rank := s.Process.Rank
	i := slices.IndexFunc(b.Runs, func(r BaselineRun) bool { return sameRank(r.Rank, rank) })
	if i < 0 && len(b.Runs) == 1 && others == 0 {
		i = 0
	}
	if i < 0 && rank == nil {
		return nil, fmt.Errorf("%s has no process without a rank; --update replaces it", b.path)
	}
	if i < 0 {
		return nil, fmt.Errorf("%s has no rank %d; --update replaces it", b.path, *rank)
	}
	base := &b.Runs[i]
	if now := devices(s); now != base.Devices {
		return nil, fmt.Errorf("%s was made on another device, %s; this is %s; --update replaces it", b.path,
			base.Devices, now)
	}
	if base.Report.MainLevel() != s.MainLevel() {
		return nil, fmt.Errorf("%s has blocks of %s, and the trace has not; --update replaces it", b.path,
			layout.Framework(base.Report.Versions))
	}
	return base.Report, nil
}
