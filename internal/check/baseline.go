package check

import (
	"encoding/json"
	"errors"
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
		run := newBaselineRun(t.Summary)
		run.from = t.Path
		if why := t.Incomplete(); why != "" {
			run.lacks = t.Path + ": the trace is not complete, so it is no baseline: " + why
		}
		var err error
		if run.Owners, err = t.highestOf(gates); err != nil {
			return nil, err
		}
		if err := b.add(program(&t.Summary.Process), run); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// JoinBaselines makes one baseline of those of a folder's files, of which each has other ranks.
func JoinBaselines(folder string, list []*Baseline) (*Baseline, error) {
	b := &Baseline{Schema: BaselineSchema, path: folder}
	for _, part := range list {
		for _, run := range part.Runs {
			run.from = part.path
			if err := b.add(part.Program, run); err != nil {
				return nil, err
			}
		}
	}
	return b, nil
}

// add adds a process of a program, which must be another rank of the same one.
func (b *Baseline) add(name string, run BaselineRun) error {
	if b.Program == "" {
		b.Program = name
	}
	if name != b.Program {
		return fmt.Errorf("%s: a baseline is of one program, not of %s (%s) and %s (%s)", b.path, b.Program,
			b.Runs[0].from, name, run.from)
	}
	i := slices.IndexFunc(b.Runs, func(r BaselineRun) bool { return sameRank(r.Rank, run.Rank) })
	switch {
	case i >= 0 && run.Rank == nil:
		return fmt.Errorf("%s: a baseline is of one run; of %s and %s, neither has a rank", b.path, b.Runs[i].from,
			run.from)
	case i >= 0:
		return fmt.Errorf("%s: a baseline is of one run; %s and %s are both of rank %d", b.path, b.Runs[i].from,
			run.from, *run.Rank)
	}
	b.Runs = append(b.Runs, run)
	return nil
}

func sameRank(a, b *int) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

// rankWords names the process of a rank.
func rankWords(rank *int) string {
	if rank == nil {
		return "a process without a rank"
	}
	return fmt.Sprintf("rank %d", *rank)
}

// JSON is the file's text.
func (b *Baseline) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(b, "", " ")
	return append(text, '\n'), err
}

// ErrNotBaseline says of JSON that it is neither a baseline nor a report.
var ErrNotBaseline = errors.New("not a baseline")

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
	return nil, fmt.Errorf("%s: %w: its schema is %q; 'memtrace check --update' writes one", path, ErrNotBaseline,
		b.Schema)
}

// of returns the summary that a trace is compared with. anyRank: where the baseline has one process only, its rank need
// not be the trace's.
func (b *Baseline) of(t *Trace, anyRank bool) (*base, error) {
	s := t.Summary
	if name := program(&s.Process); name != b.Program {
		return nil, fmt.Errorf("%s is of another program, %s; this is %s; --update replaces it", b.path, b.Program,
			name)
	}
	rank := s.Process.Rank
	i := slices.IndexFunc(b.Runs, func(r BaselineRun) bool { return sameRank(r.Rank, rank) })
	switch {
	case i >= 0:
	case len(b.Runs) == 1 && anyRank:
		i = 0
	case len(b.Runs) == 1:
		return nil, fmt.Errorf("%s is of %s, this is %s; --any-rank compares them, --update replaces it", b.path,
			rankWords(b.Runs[0].Rank), rankWords(rank))
	default:
		return nil, fmt.Errorf("%s does not have %s; --update replaces it", b.path, rankWords(rank))
	}
	run := &b.Runs[i]
	if now := partOf(s); !slices.Equal(now, run.Part) {
		return nil, fmt.Errorf("%s is about %s, this check about %s; --update replaces it", b.path, partWords(run.Part),
			partWords(now))
	}
	base := &base{run.summary(b.Program), "the baseline", run.Owners, s.At != nil, run.lacks}
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

// base is what a trace is compared with: a run of a baseline, or another trace.
type base struct {
	*report.Summary
	what     string            // it is, in words
	owners   map[string]uint64 // their highest, by subject
	atMoment bool              // the baseline is about one moment, and so are the rows
	lacks    string            // why it is none, if its trace is not complete
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

// most is the most that a gate of KindCompare may allow, if all that is not known of the requests was requested.
func (b *base) most(g Gate) Amount {
	before, _ := b.value(g)
	before.Value += float64(unknownRequest(b.Summary, g.Subject))
	return allowed(before, g.Limit)
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
