package diff

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"memtrace/analyzer/report"
)

// Diff is the change from one run to another. Positive means growth. Rows come growth first. The json names are
// published in docs/report-json.md.
type Diff struct {
	Base    Side     `json:"base"`
	New     Side     `json:"new"`
	Verdict *Verdict `json:"verdict"`
	By      []string `json:"by"` // the groupings to show
	Levels  []Level  `json:"levels"`
	Groups  []Group  `json:"groups"`
	Notes   []string `json:"notes"`
	SameRun bool     `json:"same_run"` // two moments of one trace

	Parameters []Parameter `json:"parameters,omitempty"` // nil unless both summaries have Training
}

// Side is the data needed to judge the figures of one run.
type Side struct {
	Path string `json:"path,omitempty"` // of the trace, filled in by the caller
	// "peak", or the requested moment, to which peak_bytes then applies
	Moment      string            `json:"moment"`
	TimeNS      int64             `json:"time_ns"` // when that was
	Process     report.Process    `json:"process"`
	Versions    map[string]string `json:"versions"`
	NullGPU     bool              `json:"null_gpu"`
	LostRecords uint64            `json:"lost_records"`
	Bounds      *report.Bounds    `json:"bounds,omitempty"` // nil if nothing was lost
	Complete    bool              `json:"complete"`

	// as Summary.GrowthKind has it, and the kinds of memory that grow
	Growth  string          `json:"growth"`
	Growing []*report.Trend `json:"growing,omitempty"`

	Window *report.WindowEnds `json:"window,omitempty"` // nil: the whole run is compared
	Notes  []string           `json:"notes"`
}

// Change is one number in both runs.
type Change struct {
	Base  uint64 `json:"base"`
	New   uint64 `json:"new"`
	Delta int64  `json:"delta"`

	Percent *float64 `json:"percent,omitempty"` // delta in hundredths of the base; absent where that is nothing

	// Where either run lost records: lower bounds of each side, and whether the sign of the delta is certain. Absent
	// otherwise.
	BaseLower *uint64 `json:"base_lower,omitempty"`
	NewLower  *uint64 `json:"new_lower,omitempty"`
	Certain   *bool   `json:"certain,omitempty"`
}

// changeOf adds the new side to the negated base.
func changeOf(base, changed uint64) Change {
	c := Change{Base: base, New: changed, Delta: int64(changed - base)}
	if base > 0 {
		percent := 100 * float64(c.Delta) / float64(base)
		c.Percent = &percent
	}
	return c
}

// Level compares one account on one device, or on all.
type Level struct {
	Level       string `json:"level"`  // "framework", "reserved", "driver", or a kind of other memory
	Device      string `json:"device"` // "all", or the device's index
	PeakBytes   Change `json:"peak_bytes"`
	LiveBytes   Change `json:"live_bytes"`
	AllocCount  Change `json:"alloc_count"`
	AllocBytes  Change `json:"alloc_bytes"`
	FailedCount Change `json:"failed_count"`
}

// Group compares the rows of one grouping of one level.
type Group struct {
	By    string `json:"by"`
	Level string `json:"level"`
	Rows  []Row  `json:"rows"`

	Unchanged int `json:"unchanged"` // rows with StateSame
}

// What became of a key.
const (
	StateNew    = "new"    // the base never had any of it
	StateGone   = "gone"   // the new run never had any of it
	StateGrew   = "grew"   // in bytes at the peak, else live at the end
	StateShrank = "shrank" // the same the other way round
	StateSame   = "same"   // it holds the same at the peak and at the end
)

// Row is one key.
type Row struct {
	Key        string `json:"key"`
	BaseKey    string `json:"base_key,omitempty"` // in the base, if the line or file of the place differs there
	Label      string `json:"label,omitempty"`
	State      string `json:"state"`
	Since      string `json:"since,omitempty"` // of a module without parameters that grew: it grew since this one is wider
	PeakBytes  Change `json:"peak_bytes"`
	LiveBytes  Change `json:"live_bytes"`
	AllocCount Change `json:"alloc_count"`
	AllocBytes Change `json:"alloc_bytes"`
}

// Title returns the displayed text: the label, or the key.
func (r Row) Title() string {
	if r.Label != "" {
		return r.Label
	}
	return r.Key
}

// New compares base with changed. Keys are matched by the part that is the same from run to run: threads, for example,
// without the kernel's thread number. Both summaries should have been made with the same options.
//
// Where a summary has the moment of Question.At, that is compared instead of the peak; the two moments may be of one
// trace.
func New(base, changed *report.Summary) *Diff {
	d := &Diff{Base: sideOf(base), New: sideOf(changed), Levels: []Level{}, Groups: []Group{},
		By: groupNames(base, changed), SameRun: base.Process.SameAs(&changed.Process)}
	d.Notes = append(diffNotes(base, changed), d.backwards()...)
	d.Parameters = diffParameters(base.Training, changed.Training)
	if base.At == nil && changed.At == nil {
		d.Notes = append(d.Notes, RoundingNotes(base.Training, changed.Training)...)
	}
	base, changed = AtMoment(base), AtMoment(changed)
	base, notes := pairDevices(base, changed)
	d.Notes = append(d.Notes, notes...)
	d.addLevels(base, changed)
	between := boundsBetween{base.Bounds, changed.Bounds}
	files := matchPaths(base, changed)
	moved := files.notes()
	for _, by := range d.By {
		for _, level := range []string{report.LevelFramework, report.LevelDriver} {
			b, n := base.Group(by, level), changed.Group(by, level)
			if b != nil || n != nil {
				m := matchKeys(by, b, n, files)
				g := Group{By: by, Level: level, Rows: m.rows(b, n, between)}
				for _, row := range g.Rows {
					if row.State == StateSame {
						g.Unchanged++
					}
				}
				d.Groups = append(d.Groups, g)
				if level == changed.MainLevel() {
					for _, note := range m.notes() {
						if !slices.Contains(moved, note) {
							moved = append(moved, note)
						}
					}
				}
			}
		}
	}
	d.Notes = append(d.Notes, moved...)
	d.follow(changed.Training)
	d.Verdict = d.verdict(changed.MainLevel())
	return d
}

// Groupings are those among which ShowDefaults chooses, in addition to a grouping by rules.
func Groupings() []string {
	return []string{"tag", "library", "api", "site", "inner", "operator", "module"}
}

// ShowDefaults chooses the most informative groupings, as a report does: by tag if either run has any, else by site, or
// if the same place holds most in both, by the grouping that divides it; and by category, the grouping by rules, if the
// programs train. Both summaries must have been made with Groupings and Question.Sites.
func (d *Diff) ShowDefaults(base, changed *report.Summary, category string) {
	first := "site"
	switch {
	case base.HasKeys("tag", report.Untagged) || changed.HasKeys("tag", report.Untagged):
		first = "tag"
	case changed.Division != nil && base.Division != nil && base.Division.Site == changed.Division.Site &&
		changed.Division.By != report.ByCaller:
		first = changed.Division.By
	case !base.HasKeys("site", report.NoStack) && !changed.HasKeys("site", report.NoStack):
		first = "library"
	}
	by := []string{first}
	if base.Trains() || changed.Trains() {
		by = append(by, category)
	}
	d.Explain(by...)
}

func sideOf(s *report.Summary) Side {
	moment, time := "peak", s.Main().PeakTimeNS
	if s.At != nil {
		moment, time = s.At.What, s.At.TimeNS
	}
	side := Side{Moment: moment, TimeNS: time, Process: s.Process, Versions: s.Versions, NullGPU: s.NullGPU,
		LostRecords: s.LostRecords, Bounds: s.Bounds, Complete: s.Health.Complete, Notes: s.Notes,
		Growth: s.GrowthKind(), Growing: s.Growing()}
	if s.Window != nil {
		side.Window = &s.Window.WindowEnds
	}
	return side
}

// groupNames lists the groupings of both, in the order of the new run.
func groupNames(base, changed *report.Summary) []string {
	var list []string
	for _, groups := range [][]report.Group{changed.Groups, base.Groups} {
		for _, g := range groups {
			if !slices.Contains(list, g.By) {
				list = append(list, g.By)
			}
		}
	}
	return list
}

func (d *Diff) addLevels(base, changed *report.Summary) {
	d.addLevel("framework", "all", base.Framework, changed.Framework)
	d.addLevel("driver", "all", base.Driver, changed.Driver)
	b, n := devicesByIndex(base), devicesByIndex(changed)
	for _, index := range unionKeys(b, n) {
		name := fmt.Sprint(index)
		d.addLevel("framework", name, b[index].Framework, n[index].Framework)
		d.addReserved(name, b[index], n[index])
		d.addLevel("driver", name, b[index].Driver, n[index].Driver)
	}
	for _, kind := range unionKeys(base.Other, changed.Other) {
		d.addLevel(kind, "all", base.Other[kind], changed.Other[kind])
	}
}

// addLevel leaves out what neither run has.
func (d *Diff) addLevel(level, device string, base, changed report.Level) {
	if base.Empty() && changed.Empty() {
		return
	}
	between := d.between()
	d.Levels = append(d.Levels, Level{Level: level, Device: device,
		PeakBytes:   between.change(base.PeakBytes, changed.PeakBytes, base.PeakBytesLower, changed.PeakBytesLower),
		LiveBytes:   between.change(base.LiveBytes, changed.LiveBytes, base.LiveBytesLower, changed.LiveBytesLower),
		AllocCount:  changeOf(base.AllocCount, changed.AllocCount),
		AllocBytes:  changeOf(base.AllocBytes, changed.AllocBytes),
		FailedCount: changeOf(base.FailedCount, changed.FailedCount)})
}

// addReserved compares the memory held by the framework's allocators; its counts are the driver's and are listed there.
func (d *Diff) addReserved(device string, base, changed report.Device) {
	if base.ReservedBytesPeak == 0 && changed.ReservedBytesPeak == 0 {
		return
	}
	between := d.between()
	d.Levels = append(d.Levels, Level{Level: "reserved", Device: device,
		PeakBytes: between.change(base.ReservedBytesPeak, changed.ReservedBytesPeak, base.ReservedBytesPeakLower,
			changed.ReservedBytesPeakLower),
		LiveBytes: between.change(base.ReservedBytesCurrent, changed.ReservedBytesCurrent,
			base.ReservedBytesCurrentLower, changed.ReservedBytesCurrentLower)})
}

func devicesByIndex(s *report.Summary) map[int16]report.Device {
	m := make(map[int16]report.Device, len(s.Devices))
	for _, d := range s.Devices {
		m[d.Index] = d
	}
	return m
}

func unionKeys[K cmp.Ordered, V any](a, b map[K]V) []K {
	all := maps.Clone(a)
	if all == nil {
		all = make(map[K]V)
	}
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// diffNotes lists what makes the two runs hard to compare.
func diffNotes(base, changed *report.Summary) []string {
	list := []string{}
	if base.Process.SameAs(&changed.Process) && base.At == nil && changed.At == nil {
		list = append(list, "Both are of the same process, at the same moment.")
	}
	for _, side := range []struct {
		name string
		s    *report.Summary
	}{{"base", base}, {"new run", changed}} {
		if !side.s.Health.Complete {
			list = append(list, "The "+side.name+" is not complete; differences may come from what is missing.")
		}
		if side.s.Process.Ended != report.EndedClean {
			list = append(list, "The "+side.name+" did not exit normally ("+
				cmp.Or(side.s.Process.Signal, side.s.Process.Ended)+").")
		}
	}
	if base.NullGPU != changed.NullGPU {
		list = append(list, "Only one of the runs used a real GPU.")
	}
	for _, name := range unionKeys(base.Versions, changed.Versions) {
		if b, n := base.Versions[name], changed.Versions[name]; b != n && name != "memtrace" {
			list = append(list, fmt.Sprintf("%s differs: %s in the base, %s in the new run.", name, orNone(b),
				orNone(n)))
		}
	}
	if base.MainLevel() != changed.MainLevel() {
		list = append(list, "Only one of the runs has blocks of a framework; compare the driver level.")
	}
	return list
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// plus adds to a figure that may not have begun.
func plus(sum *uint64, bytes uint64) *uint64 {
	if sum == nil {
		return &bytes
	}
	*sum += bytes
	return sum
}
