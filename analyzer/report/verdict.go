package report

import "memtrace/analyzer/rules"

// Outcomes of a run, as a Verdict tells them.
const (
	OutcomeNothing   = "nothing"       // no memory was asked for
	OutcomePeak      = "peak"          // it ran and had its peak
	OutcomeOOM       = "out_of_memory" // memory ran out, and as far as known that was the end
	OutcomeCaughtOOM = "caught_oom"    // memory ran out, and the program went on
)

// Verdict is the answer to the first question: where did the memory go? It repeats the few figures of a Summary that
// say it, so that a reader need not search.
type Verdict struct {
	Outcome     string        `json:"outcome"`
	Level       string        `json:"level"` // that the peak belongs to: "framework" or "driver"
	PeakBytes   uint64        `json:"peak_bytes"`
	PeakTimeNS  int64         `json:"peak_time_ns"`
	DeviceCount int           `json:"device_count"`           // devices that the program used
	DeviceBytes uint64        `json:"device_bytes,omitempty"` // size of the device, where it used one
	Iteration   uint64        `json:"iteration,omitempty"`    // in which the peak stood, from 1; 0: not known, or after the last one
	Phase       string        `json:"phase,omitempty"`        // of the allocation that reached it; "" unknown
	Category    *VerdictShare `json:"category,omitempty"`     // that held most at the peak; nil if no rule knows
	Owner       *VerdictShare `json:"owner,omitempty"`        // the same by the grouping that says most
	Operator    *VerdictShare `json:"operator,omitempty"`     // the operator that holds most, where a library runs the program's loop
	Module      *VerdictShare `json:"module,omitempty"`       // and the module, repeated ones taken together; nil if no module is known
	IdleBytes   uint64        `json:"idle_bytes"`             // reserved by the framework's allocator then, in no block
	Growth      string        `json:"growth"`                 // GrowthUnknown, GrowthNone or GrowthSteady: see Trend
	OOMCount    uint64        `json:"oom_count"`
}

// VerdictShare is a row that stands out.
type VerdictShare struct {
	By    string  `json:"by"`
	Name  string  `json:"name"`
	Bytes uint64  `json:"bytes"`
	Share float64 `json:"share"` // of the peak's blocks, 0 to 1
}

// Verdict draws the conclusion from a summary.
func (s *Summary) Verdict() *Verdict {
	level := s.Main()
	v := &Verdict{Outcome: OutcomePeak, Level: s.MainLevel(), PeakBytes: level.PeakBytes, PeakTimeNS: level.PeakTimeNS, Growth: GrowthUnknown, OOMCount: s.OOM.Count}
	switch told := s.OOM.Count > 0 && len(s.OOM.Events) > 0; {
	case told && s.Process.ExitStatus != nil && *s.Process.ExitStatus == 0:
		v.Outcome = OutcomeCaughtOOM
	case told:
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
	if s.Trend != nil {
		v.Growth = s.Trend.Kind
	}
	if s.growsByIteration() {
		v.Growth = GrowthSteady
	}
	v.peakOfTraining(s.Training)
	v.largestOwner(s)
	if v.Owner != nil && v.Owner.By == "inner" {
		v.lookThrough(s)
	}
	return v
}

// growsByIteration reports whether each iteration leaves more behind than the one before, which shows in runs that are
// too short for a trend over time.
func (s *Summary) growsByIteration() bool {
	return s.Training != nil && s.Training.IterationsBy != IterationsByPeriod && s.Training.Growth().Kind == GrowthSteady
}

// lookThrough names the operator and the module that hold most.
func (v *Verdict) lookThrough(s *Summary) {
	if l := s.Ledger("operator"); l != nil {
		for i := range l.Rows {
			if r := &l.Rows[i]; r.Owner == OwnerBlocks && r.Key != NoOperator && (v.Operator == nil || r.Bytes > v.Operator.Bytes) {
				v.Operator = shareOf("operator", r.Key, r.Bytes, v.PeakBytes)
			}
		}
	}
	if l := s.Ledger("module"); l != nil {
		for _, m := range l.RepeatedModules() {
			if m.Known && (v.Module == nil || m.Bytes > v.Module.Bytes) {
				v.Module = shareOf("module", m.Title, m.Bytes, v.PeakBytes)
			}
		}
	}
}

// peakOfTraining says in which iteration the peak stood, and what it was for.
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

// KnownKey reports whether the key of a row says anything.
func KnownKey(key string) bool {
	switch key {
	case Untagged, UnknownLibrary, NoStack, rules.Others, "":
		return false
	}
	return true
}

func shareOf(by, name string, bytes, whole uint64) *VerdictShare {
	return &VerdictShare{By: by, Name: name, Bytes: bytes, Share: float64(bytes) / float64(max(whole, 1))}
}
