package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// BaselineSchema names the version of baseline files.
const BaselineSchema = "memtrace.baseline/1"

// Baseline is what a run is compared with: the figures of each rank at its peak. It has nothing that differs from run
// to run or names a machine, and sorted keys, so that its history in a repository can be read.
type Baseline struct {
	Schema  string        `json:"schema"`
	Program string        `json:"program"`
	Runs    []BaselineRun `json:"runs"`

	path string
}

// NewBaseline makes a baseline of traces, with the figures of the owners that gates name.
func NewBaseline(path string, traces []*Trace, gates []Gate) (*Baseline, error) {
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
		run := newBaselineRun(t.Summary)
		var err error
		if run.Owners, err = t.highestOf(gates); err != nil {
			return nil, err
		}
		b.Runs = append(b.Runs, run)
	}
	return b, nil
}

func sameRank(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

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
	switch b.Schema {
	case BaselineSchema:
		return b, nil
	case "memtrace.report/1":
		t, err := ParseReport(path, text)
		if err != nil {
			return nil, err
		}
		return NewBaseline(path, []*Trace{t}, nil)
	}
	return nil, fmt.Errorf("%s: not a baseline: its schema is %q; 'memtrace check --update' writes one", path, b.Schema)
}

// of returns the summary that a trace is compared with. others counts the other traces that are checked.
func (b *Baseline) of(t *Trace, others int) (*base, error) {
	s := t.Summary
	if name := program(&s.Process); name != b.Program {
		return nil, fmt.Errorf("%s is of another program, %s; this is %s; --update replaces it", b.path, b.Program,
			name)
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
	run := &b.Runs[i]
	if now := partOf(s); !slices.Equal(now, run.Part) {
		return nil, fmt.Errorf("%s is about %s, this check about %s; --update replaces it", b.path, partWords(run.Part),
			partWords(now))
	}
	base := &base{run.summary(b.Program), run.Owners, s.At != nil}
	if now := devices(s); now != run.Devices {
		return nil, fmt.Errorf("%s was made on another device, %s; this is %s; --update replaces it", b.path,
			run.Devices, now)
	}
	if base.MainLevel() != s.MainLevel() {
		return nil, fmt.Errorf("%s has the memory of the %s level, the trace that of the %s; --update replaces it",
			b.path, base.MainLevel(), s.MainLevel())
	}
	if here := layout.Framework(s.Versions); here != layout.Framework(base.Versions) {
		return nil, fmt.Errorf("%s has blocks of %s, the trace of %s; --update replaces it", b.path,
			layout.Framework(base.Versions), here)
	}
	return base, nil
}

// base is a run of a baseline.
type base struct {
	*report.Summary
	owners   map[string]uint64 // their highest, by subject
	atMoment bool              // the baseline is about one moment, and so are the rows
}

// summary is nil without a baseline.
func (b *base) summary() *report.Summary {
	if b == nil {
		return nil
	}
	return b.Summary
}

// value is a gate's figure.
func (b *base) value(g Gate) (Amount, error) {
	if g.Subject.Name == "" || b.atMoment {
		return baseValue(b.Summary, g)
	}
	bytes, known := b.owners[g.Subject.String()]
	if !known {
		return Amount{}, fmt.Errorf("it does not have the highest of %s; --update writes what the gates name",
			g.Subject)
	}
	return Amount{float64(bytes), Bytes}, nil
}

// partOf says what of a run a summary is about: a moment, a window, the filters.
func partOf(s *report.Summary) (words []string) {
	if s.At != nil {
		words = append(words, "the moment "+s.At.What)
	}
	return append(words, s.Filter...)
}

func partWords(words []string) string {
	if len(words) == 0 {
		return "the whole run"
	}
	return strings.Join(words, ", ")
}
