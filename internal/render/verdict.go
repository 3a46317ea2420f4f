package render

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/cause"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// Verdict answers where the memory went in one to four sentences.
func Verdict(s *report.Summary) []string {
	var list []string
	for _, f := range verdictFindings(s) {
		list = append(list, f.Text)
	}
	return list
}

// othersSentence speaks of other processes on a device where they held a good part of it.
func othersSentence(s *report.Summary) (text string, bytes uint64) {
	for device, l := range s.DeviceLedger.Highest() {
		if n := l.Sample.OthersBytes; n > 0 && n >= l.TotalBytes/20 {
			return fmt.Sprintf("Other processes held %s of %s.", layout.Bytes(n), layout.DeviceName(device)), n
		}
	}
	return "", 0
}

// contextSentence speaks of what a process holds on a device before its first allocation, where that is a good part of
// what it uses: nvidia-smi counts it, a framework's own counters do not.
func contextSentence(s *report.Summary) (text string, bytes uint64) {
	for _, l := range s.DeviceLedger.Highest() {
		if n, own := l.Sample.ContextBytes, l.Sample.Own(); n > 0 && n >= own/contextPart {
			return fmt.Sprintf("The CUDA context and its code took %s, %s of the %s that nvidia-smi counts for the process.",
				layout.Bytes(n), layout.PercentOf(n, own), layout.Bytes(own)), n
		}
	}
	return "", 0
}

// contextPart is the least part of what a process uses, as a divisor, that makes its context worth a sentence.
const contextPart = 10

// retrySentence speaks of requests that were granted only after the allocator had given memory back. Where memory ran
// out for good, the way there is no news.
func retrySentence(s *report.Summary, v *report.Verdict) string {
	if n := s.OOM.RecoveredCount; n > 0 && v.Outcome != report.OutcomeOOM {
		return fmt.Sprintf("The allocator had to release its cache and retry %s, which is slow.", layout.Times(n))
	}
	return ""
}

// levelSubject is what a sentence calls the memory of the verdict's level.
func levelSubject(s *report.Summary, v *report.Verdict) string {
	if v.Level == "framework" {
		return layout.UpperFirst(layout.Genitive(layout.Framework(s.Versions))) + " memory"
	}
	return "Device memory"
}

func peakSentence(s *report.Summary, v *report.Verdict) string {
	verb := "peaked at"
	if ofSnapshot(s) {
		verb = "held"
	}
	text := fmt.Sprintf("%s %s %s", levelSubject(s, v), verb, layout.Range(s.Main().PeakBytesLower, v.PeakBytes,
		s.Bounds))
	if v.DeviceCount > 1 {
		text += fmt.Sprintf(" in total on %d devices", v.DeviceCount)
	}
	if ofSnapshot(s) {
		text += " when the snapshot was made"
	} else {
		text += layout.DuringWindow(s.Window) + peakPlace(v)
	}
	if what := partWords(v); what != "" {
		text += ": " + what
	}
	return text + "."
}

// ofSnapshot reports whether the trace holds what was live at one moment, so that its peak is that moment.
func ofSnapshot(s *report.Summary) bool { return s.Process.Snapshot && s.Window == nil }

// peakPlace says at which point of the run the peak stood.
func peakPlace(v *report.Verdict) string {
	iteration := ""
	if v.Iteration > 0 {
		iteration = " of iteration " + layout.Count(v.Iteration)
	}
	switch {
	case v.Phase != "":
		return ", in " + phaseWords(v.Phase) + iteration
	case iteration != "":
		return ", in" + strings.TrimPrefix(iteration, " of")
	}
	return ", " + layout.Moment(v.PeakTimeNS) + " into the run"
}

// phaseWords is a phase in a sentence.
func phaseWords(phase string) string {
	switch phase {
	case "forward", "backward":
		return "the " + phase + " pass"
	case "recompute":
		return "the recomputation for the backward pass"
	case "optimizer":
		return "the optimizer step"
	case "init":
		return "the set-up of the model"
	case "data":
		return "the loading of data"
	}
	return sanitize.Text(phase)
}

// shareSentence says what held most of the peak.
func shareSentence(v *report.Verdict) string {
	var parts []string
	if c := v.Category; c != nil && c.Share >= 0.25 {
		parts = append(parts, fmt.Sprintf("%.0f%% of it was %s (%s)", 100*c.Share, categoryWords(c.Name),
			layout.Bytes(c.Bytes)))
	}
	if o := v.Owner; o != nil && o.Share >= 0.1 {
		text := fmt.Sprintf("%.0f%% was allocated %s (%s)", 100*o.Share, ownerWords(o), layout.Bytes(o.Bytes))
		switch {
		case o.Bytes == v.PeakBytes:
			text = "all of it was allocated " + ownerWords(o)
		case len(parts) == 0:
			text = strings.Replace(text, "%", "% of it", 1)
		}
		parts = append(parts, text)
	}
	return sentence(layout.UpperFirst(strings.Join(parts, "; ")))
}

// categoryWords is a category's name in a sentence: with a small letter, unless its first word has more large ones.
func categoryWords(name string) string {
	if first, _, _ := strings.Cut(name, " "); first == "" || strings.ToLower(first[1:]) != first[1:] {
		return sanitize.Text(name)
	}
	return sanitize.Text(layout.LowerFirst(name))
}

// ownerWords says where or by whom something was allocated.
func ownerWords(o *report.VerdictShare) string {
	if o.Name == report.BeforeStart {
		return o.Name
	}
	switch o.By {
	case "site", "inner":
		return "at " + sanitize.Text(o.Name)
	case "tag":
		return "under the tag " + sanitize.Text(o.Name)
	}
	return "by " + sanitize.Text(o.Name)
}

func sentence(text string) string {
	if text == "" {
		return ""
	}
	return text + "."
}

// idleSentence speaks of what the framework's allocator held without use where that is much: when memory ran out, if
// it did, otherwise at the peak.
func idleSentence(s *report.Summary, v *report.Verdict) (text string, idle uint64, evidence string) {
	used := v.PeakBytes
	idle, evidence = v.IdleBytes, "verdict.idle_bytes"
	if v.Outcome != report.OutcomePeak {
		at := s.DetailedOOM()
		a := s.OOM.Events[at].Allocator
		if a == nil {
			return "", 0, ""
		}
		idle, used, evidence = a.IdleBytes, a.AllocatedBytes, fmt.Sprintf("oom.events[%d].allocator", at)
	}
	if idle < used/10 || idle == 0 || s.Bounds != nil {
		return "", 0, ""
	}
	share := float64(idle) / float64(max(used, 1))
	part := fmt.Sprintf("%.0f%% of", 100*share)
	if share > 1 {
		part = layout.Ratio(share, 1)
	}
	text = fmt.Sprintf("Another %s (%s what it used) was reserved by %s and unused", layout.Bytes(idle), part,
		layout.Framework(s.Versions))
	if v.Outcome == report.OutcomePeak {
		text += wasteWords(cause.WasteOf(s), idle)
	} else if first := oomDevices(s)[0]; first.several {
		text += first.place()
	}
	return text + ".", idle, evidence
}

// roundingSentence speaks of what blocks have beyond the request where that is much.
func roundingSentence(s *report.Summary) string {
	r := s.Framework.RequestedAtPeak
	if r == nil || r.RestBytes < s.Framework.PeakBytes/20 {
		return ""
	}
	return fmt.Sprintf(
		"%s (%.0f%%) of its blocks was not requested: sizes are rounded up, and small remainders are not split off.",
		layout.Bytes(r.RestBytes),
		100*float64(r.RestBytes)/float64(s.Framework.PeakBytes))
}

// shortRun reports whether a training program ended before it could show growth.
func shortRun(s *report.Summary) bool {
	const least = 5 // iterations, of which the first makes what is needed from then on
	return s.Training != nil && s.Training.IterationsBy != report.IterationsByNothing &&
		len(layout.EndedIterations(s.Training)) < least
}
