package render

import (
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// Findings lists all sentences of a report: the verdict, advice where memory ran out, and the limits of the figures.
// The text contains the same sentences.
func Findings(s *report.Summary) []report.Finding {
	return slices.Concat(verdictFindings(s), adviceFindings(s), s.Limits)
}

// recovered is the kind of advice on a request that was granted after the allocator gave memory back.
const recovered = "recovered"

// adviceFindings are the advice on all refusals. What is said again of a later one is said once, and so is that the
// allocator gave memory back, with how often.
func adviceFindings(s *report.Summary) (list []report.Finding) {
	for i := range s.OOM.Events {
		for k, a := range s.OOM.Events[i].Advice {
			evidence := fmt.Sprintf("oom.events[%d].advice[%d]", i, k)
			same := slices.IndexFunc(list, func(f report.Finding) bool {
				return f.ID == a.Rule && (f.Text == a.Text || a.Rule == recovered)
			})
			if same < 0 {
				list = append(list, report.NewFinding(a.Rule, a.Text, a.FreesBytes, evidence))
				continue
			}
			f := &list[same]
			f.Bytes, f.Evidence = max(f.Bytes, a.FreesBytes), append(f.Evidence, evidence)
			if a.Rule == recovered {
				f.Text = fmt.Sprintf("%s the allocator gave memory back to the device, at most %s at once, and then got what "+
					"it wanted. The program went on, but giving back and asking again costs time at each such point.",
					layout.UpperFirst(layout.Times(uint64(len(f.Evidence)))), layout.Bytes(f.Bytes))
			}
		}
	}
	return list
}

// verdictFindings describe where the memory went, each in a sentence or two.
func verdictFindings(s *report.Summary) []report.Finding {
	v := s.Verdict()
	list, otherDevices := []report.Finding{}, []report.Finding(nil)
	add := func(id, text string, bytes uint64, evidence ...string) {
		if text != "" {
			list = append(list, report.NewFinding(id, text, bytes, evidence...))
		}
	}
	if s.Bounds != nil {
		add("bounds", fmt.Sprintf("Some records were lost (%s), so figures are bounds.",
			layout.Count(s.Bounds.LostRecords)), 0, "bounds")
	}
	switch v.Outcome {
	case report.OutcomeNothing:
		text := "No CUDA memory was allocated."
		if !hasNoMemory(s) {
			text = "No device memory was allocated."
		}
		add("nothing-allocated", text, 0, "verdict.outcome")
		return list
	case report.OutcomeOOM, report.OutcomeCaughtOOM:
		var first []report.Finding
		first, otherDevices = oomFindings(s, v)
		list = append(list, first...)
	default:
		add("peak", peakSentence(s, v), v.PeakBytes, "verdict.peak_bytes", "verdict.peak_time_ns")
		add("largest-holder", shareSentence(v), holderBytes(v), "verdict.category", "verdict.owner", "verdict.module")
	}
	add("engine-threads", engineSentence(s, v), 0, "verdict.owner")
	idleText, idle, evidence := idleSentence(s, v)
	add("idle-reserved", idleText, idle, evidence)
	if r := s.Framework.RequestedAtPeak; r != nil {
		add("rounding", roundingSentence(s), r.RestBytes, "framework.requested_at_peak")
	}
	add("loaded-twice", loadedSentence(s, v), s.LoadedTwiceBytes, "loaded_twice_bytes")
	copied, copies := copiesSentence(s, v)
	add("parameter-copies", copied, copies, "parameter_copies")
	kept, freed := keptSentence(s, v)
	list = append(list, causeFindings(s, v, kept)...)
	fits, grows := fitSentence(s)
	add("fits", fits, grows, "training.iterations", "devices")
	atEnd := s.KeptBy != nil && s.KeptBy.Occasion != report.KeptAtOOM
	if !atEnd {
		add("kept-by", kept, freed, "kept_by")
	}
	others, held := othersSentence(s)
	add("other-processes-held", others, held, "device_ledger.devices")
	context, taken := contextSentence(s)
	add("context-held", context, taken, "device_ledger.devices")
	add("retries", retrySentence(s, v), 0, "oom.recovered_count")
	list = slices.Concat(list, otherDevices, growthFindings(s, v))
	if atEnd { // what grows is told first
		add("kept-by", kept, freed, "kept_by")
	}
	return list
}

// keptSentence names what keeps tensors alive where memory ran out or grows.
func keptSentence(s *report.Summary, v *report.Verdict) (text string, bytes uint64) {
	var grown uint64
	if s.Trend != nil && s.Trend.Kind == report.GrowthSteady {
		grown = s.Trend.Bytes
	}
	switch {
	case s.KeptBy == nil:
	case s.KeptBy.Occasion == report.KeptAtOOM && v.Outcome != report.OutcomePeak:
		return layout.KeptBy(s.KeptBy, s.AllocatedAtOOM(), grown)
	case s.KeptBy.Occasion == report.KeptAtEnd && grown > 0:
		return layout.KeptBy(s.KeptBy, s.Framework.PeakBytes, grown)
	case s.KeptBy.Occasion == report.KeptWhileGrowing && grown > 0:
		allocated, before := s.KeptBy.AllocatedBytes, s.Framework.PeakBytes-min(s.Framework.PeakBytes, grown)
		return layout.KeptBy(s.KeptBy, allocated, allocated-min(allocated, before))
	}
	return "", 0
}

// holderBytes is the bytes of the largest holder: the owner's share, else the category's.
func holderBytes(v *report.Verdict) uint64 {
	switch {
	case v.Owner != nil:
		return v.Owner.Bytes
	case v.Category != nil:
		return v.Category.Bytes
	}
	return 0
}

// growthFindings report whether the program's memory keeps growing, and at which lines; none if that is unknown.
func growthFindings(s *report.Summary, v *report.Verdict) []report.Finding {
	list := []report.Finding{}
	for _, t := range s.Growing() {
		evidence := "trend"
		if t != s.Trend {
			evidence = "other_trends"
		}
		list = append(list, report.NewFinding("growth", layout.Growth(t, s.MainLevel()), t.Bytes, evidence))
	}
	if v.Growth == report.GrowthNone && v.Outcome == report.OutcomePeak && !shortRun(s) && !ofSnapshot(s) {
		text := layout.NoGrowth(s.GrowingLittle(), s.MainLevel())
		return []report.Finding{report.NewFinding("no-growth", text, 0, "verdict.growth")}
	}
	return list
}
