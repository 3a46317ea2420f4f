package report

import (
	"cmp"

	"memtrace/internal/rules"
)

// Outcomes of a run in a Verdict.
const (
	OutcomeNothing   = "nothing"       // no memory was requested
	OutcomePeak      = "peak"          // it ran and had its peak
	OutcomeOOM       = "out_of_memory" // memory ran out, and as far as known that was the end
	OutcomeCaughtOOM = "caught_oom"    // memory ran out, and the program continued
)

// Verdict is the answer to the main question: where did the memory go? It repeats the few figures of a Summary that
// answer it.
type Verdict struct {
	Outcome     string `json:"outcome"`
	Level       string `json:"level"` // that the peak belongs to: "framework" or "driver"
	PeakBytes   uint64 `json:"peak_bytes"`
	PeakTimeNS  int64  `json:"peak_time_ns"`
	DeviceCount int    `json:"device_count"`           // devices that the program used
	DeviceBytes uint64 `json:"device_bytes,omitempty"` // size of the device, where it used one
	// of the peak, from 1; 0: unknown, or after the last one
	Iteration uint64        `json:"iteration,omitempty"`
	Phase     string        `json:"phase,omitempty"`    // of the allocation that reached it; "" unknown
	Category  *VerdictShare `json:"category,omitempty"` // largest one at the peak; nil if no rule matches
	Owner     *VerdictShare `json:"owner,omitempty"`    // the same by the most informative grouping
	Operator  *VerdictShare `json:"operator,omitempty"` // the operator that holds most; nil if none is known
	// the module that holds most including its children, repeated ones joined; nil if none is prominent
	Module    *VerdictShare `json:"module,omitempty"`
	Function  *VerdictShare `json:"-"`          // the same of functions that are no modules
	IdleBytes uint64        `json:"idle_bytes"` // reserved by the framework's allocator then, in no block
	Growth    string        `json:"growth"`     // GrowthUnknown, GrowthNone or GrowthSteady: see Trend
	OOMCount  uint64        `json:"oom_count"`
}

// VerdictShare is a prominent row.
type VerdictShare struct {
	By    string  `json:"by"`
	Name  string  `json:"name"`
	Bytes uint64  `json:"bytes"`
	Share float64 `json:"share"` // of the peak's blocks, 0 to 1
	Deep  bool    `json:"-"`     // of a module: those below it hold part of that
}

// Verdict draws the conclusion from a summary.
func (s *Summary) Verdict() *Verdict {
	level := s.Main()
	v := &Verdict{Outcome: OutcomePeak, Level: s.MainLevel(), PeakBytes: level.PeakBytes, PeakTimeNS: level.PeakTimeNS,
		Growth: s.GrowthKind(), OOMCount: s.OOM.Count}
	switch reported := s.OOM.Count > 0 && len(s.OOM.Events) > 0; {
	case reported && s.Process.ExitStatus != nil && *s.Process.ExitStatus == 0:
		v.Outcome = OutcomeCaughtOOM
	case reported:
		v.Outcome = OutcomeOOM
	case s.Driver.Empty() && s.Framework.Empty():
		v.Outcome = OutcomeNothing
	}
	for i := range s.Devices {
		if d := &s.Devices[i]; !d.Driver.Empty() || !d.Framework.Empty() {
			v.DeviceCount++
			v.DeviceBytes = d.TotalBytes
		}
	}
	if v.DeviceCount != 1 {
		v.DeviceBytes = 0
	}
	v.peakOfTraining(s.Training)
	v.largestOwner(s)
	if v.name(s); v.Module == nil && v.Outcome == OutcomePeak {
		v.Function = s.Function
	}
	return v
}

// name sets the operator and the module that hold most: when memory ran out, if it did and that is known, otherwise at
// the peak. For an event also the inner line, if a library runs the loop.
func (v *Verdict) name(s *Summary) {
	operators, modules, whole := s.Ledger("operator"), s.Ledger("module"), v.PeakBytes
	if v.Outcome == OutcomeOOM || v.Outcome == OutcomeCaughtOOM {
		e := &s.OOM.Events[s.DetailedOOM()]
		if len(e.Through) > 0 {
			operators, modules, whole = e.ThroughLedger("operator"), e.ThroughLedger("module"), e.UsedBytes
			if e.DrivenByLibrary() {
				row, _ := e.ThroughLedger("inner").Largest(OwnerBlocks, func(r LedgerRow) bool {
					return KnownKey(r.Key)
				})
				v.Owner = shareOf("inner", cmp.Or(row.Label, row.Key), row.Bytes, whole)
			}
		}
	}
	if operators != nil && operators.Moment != "exit" {
		if row, found := operators.Largest(OwnerBlocks, func(r LedgerRow) bool {
			return NamesOwner(r.Key)
		}); found {
			v.Operator = shareOf("operator", row.Key, row.Bytes, whole)
		}
	}
	if modules != nil && modules.Moment != "exit" {
		if title, bytes, deep := modules.HeavyModule(whole); title != "" {
			v.Module = shareOf("module", title, bytes, whole)
			v.Module.Deep = deep
		}
	}
}

// peakOfTraining sets the iteration of the peak, and its categories.
func (v *Verdict) peakOfTraining(t *Training) {
	if t == nil || t.Highest < 0 || t.Level != v.Level {
		return
	}
	highest := &t.Iterations[t.Highest]
	if t.IterationsBy != IterationsByNothing && highest.Ended {
		v.Iteration = highest.Number
	}
	if phase := highest.Peak.Phase; phase != "other" {
		v.Phase = phase
	}
	for i, bytes := range highest.Peak.Held {
		if t.Categories[i] != rules.Others && bytes > 0 && (v.Category == nil || bytes > v.Category.Bytes) {
			v.Category = shareOf("category", t.Categories[i], bytes, highest.Peak.Bytes)
		}
	}
}

// largestOwner names the row of the first grouping that holds most at the peak, and what the allocator held idle.
func (v *Verdict) largestOwner(s *Summary) {
	if len(s.By) == 0 {
		return
	}
	l := s.Ledger(s.By[0])
	if l == nil || l.Moment != "peak" {
		return
	}
	for i := range l.Rows {
		switch r := &l.Rows[i]; r.Owner {
		case OwnerSlack:
			v.IdleBytes = r.Bytes
		case OwnerBlocks:
			if KnownKey(r.Key) && (v.Owner == nil || r.Bytes > v.Owner.Bytes) {
				name := r.Key
				if r.Label != "" {
					name = r.Label
				}
				v.Owner = shareOf(l.By, name, r.Bytes, v.PeakBytes)
			}
		}
	}
}

// KnownKey reports whether the key of a row is a name.
func KnownKey(key string) bool {
	switch key {
	case Untagged, UnknownLibrary, UnknownCall, NoStack, rules.Others, "":
		return false
	}
	return true
}

// NamesOwner reports whether the key of a row names a part of the program, and not what belongs to none.
func NamesOwner(key string) bool { return KnownKey(key) && key != NoModule && key != NoOperator }

func shareOf(by, name string, bytes, whole uint64) *VerdictShare {
	return &VerdictShare{By: by, Name: name, Bytes: bytes, Share: float64(bytes) / float64(max(whole, 1))}
}
