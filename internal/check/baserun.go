package check

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// BaselineRun is one process.
type BaselineRun struct {
	Rank     *int              `json:"rank,omitempty"`
	Devices  string            `json:"devices"`
	Versions map[string]string `json:"versions"`
	NullGPU  bool              `json:"null_gpu"`
	Level    string            `json:"level"` // "framework" or "driver", of the peak and the groups

	PeakBytes      uint64                       `json:"peak_bytes"`
	RequestedBytes *uint64                      `json:"requested_bytes,omitempty"`         // absent if it is not known
	UnknownBytes   uint64                       `json:"requested_unknown_bytes,omitempty"` // in blocks of which it is not
	OtherBytes     map[string]uint64            `json:"other_bytes"`                       // peaks of other memory, by kind
	LibraryBytes   map[string]uint64            `json:"library_bytes"`                     // outside the framework's allocator
	Groups         map[string]map[string]uint64 `json:"groups"`                            // by grouping and key
	Owners         map[string]uint64            `json:"owners,omitempty"`                  // their own highest, by gate
	Part           []string                     `json:"part,omitempty"`                    // of the run; absent: the whole
	Parameters     []BaselineParameter          `json:"parameters,omitempty"`

	from  string // the file that it was read from
	lacks string // why that is no baseline, if it is a trace that is not complete

	// whether its memory grows; nil and empty in a baseline's file, which has no times
	trend       *report.Trend
	otherTrends []report.Trend
}

// BaselineParameter is what belongs to a parameter or buffer of a model, in bytes of its elements.
type BaselineParameter struct {
	Name      string `json:"name"`
	Category  string `json:"category"`
	Bytes     uint64 `json:"bytes"`
	Gradient  uint64 `json:"gradient_bytes,omitempty"`
	Optimizer uint64 `json:"optimizer_bytes,omitempty"`
}

// rowsKept is how many rows of each grouping a baseline has.
const rowsKept = 1000

// baseGroupings are those of a baseline.
var baseGroupings = []string{"tag", CategoryGrouping, "module", "site", "operator"}

func newBaselineRun(s *report.Summary) BaselineRun {
	r := BaselineRun{Rank: s.Process.Rank, Devices: devices(s), Versions: maps.Clone(s.Versions), NullGPU: s.NullGPU,
		Level: s.MainLevel(), PeakBytes: s.Main().PeakBytes, OtherBytes: map[string]uint64{},
		LibraryBytes: map[string]uint64{}, Groups: map[string]map[string]uint64{}, Part: partOf(s), trend: s.Trend,
		otherTrends: s.OtherTrends}
	delete(r.Versions, "memtrace")
	if bytes, err := requested(s); err == nil {
		r.UnknownBytes = unknownRequest(s, Subject{Kind: "requested"})
		r.RequestedBytes = new(wholeBytes(bytes.Value) - r.UnknownBytes)
	}
	for kind, level := range s.Other {
		r.OtherBytes[kind] = level.PeakBytes
	}
	for _, by := range baseGroupings {
		if g := s.Group(by, s.MainLevel()); g != nil {
			r.Groups[by] = map[string]uint64{}
			for _, row := range g.Rows[:min(len(g.Rows), rowsKept)] {
				if row.PeakBytes > 0 {
					r.Groups[by][row.Key] = row.PeakBytes
				}
			}
		}
	}
	if g := s.Group("library", report.LevelDriver); g != nil {
		for _, row := range g.Rows[:min(len(g.Rows), rowsKept)] {
			if bytes, err := libraryBytes(s, Subject{"library", row.Key}); err == nil {
				r.LibraryBytes[row.Key] = bytes
			}
		}
	}
	if s.Training != nil {
		for _, p := range s.Training.Parameters {
			state, _ := p.StateBytes()
			r.Parameters = append(r.Parameters, BaselineParameter{Name: p.Name, Category: p.Category, Bytes: p.Bytes,
				Gradient: p.Gradient, Optimizer: state})
		}
	}
	return r
}

// summary is a summary with the figures of the run: what a difference and the gates need.
func (r *BaselineRun) summary(program string) *report.Summary {
	level := report.Level{PeakBytes: r.PeakBytes, AllocCount: 1}
	s := &report.Summary{Versions: r.Versions, NullGPU: r.NullGPU, Driver: level, Other: map[string]report.Level{},
		Process: report.Process{Command: program, Ended: report.EndedClean, Rank: r.Rank},
		Health:  report.Health{Complete: true}, Trend: r.trend, OtherTrends: r.otherTrends}
	if r.Level == report.LevelFramework {
		s.Framework = level
		if r.RequestedBytes != nil {
			s.Framework.RequestedAtPeak = &report.Requested{Bytes: *r.RequestedBytes, UnknownBytes: r.UnknownBytes}
		}
	}
	for kind, bytes := range r.OtherBytes {
		s.Other[kind] = report.Level{PeakBytes: bytes, AllocCount: 1}
	}
	for _, by := range slices.Sorted(maps.Keys(r.Groups)) {
		s.Groups = append(s.Groups, report.Group{By: by, Level: s.MainLevel(), Rows: rowsOf(r.Groups[by])})
	}
	s.Groups = append(s.Groups, report.Group{By: "library", Level: report.LevelDriver, Rows: rowsOf(r.LibraryBytes)})
	s.Training = &report.Training{Level: s.MainLevel()}
	for _, p := range r.Parameters {
		s.Training.Parameters = append(s.Training.Parameters, report.Parameter{Name: p.Name, Category: p.Category,
			Bytes: p.Bytes, Gradient: p.Gradient, States: []report.State{{Name: "all", Bytes: p.Optimizer}}})
	}
	return s
}

// rowsOf makes rows, the largest first.
func rowsOf(bytes map[string]uint64) (rows []report.Row) {
	for key, held := range bytes {
		rows = append(rows, report.Row{Key: key, PeakBytes: held, AllocCount: 1})
	}
	slices.SortFunc(rows, func(a, b report.Row) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), strings.Compare(a.Key, b.Key))
	})
	return rows
}
