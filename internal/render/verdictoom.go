package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/render/oomtext"
	"memtrace/internal/rules"
	"memtrace/internal/sanitize"
)

// maxOOMDevices bounds the devices whose first refusal the verdict tells.
const maxOOMDevices = 4

// oomOn is running out of memory for good on one device, or of the host's memory.
type oomOn struct {
	event   *report.OOMEvent // the first time
	at      int              // its index among the events
	times   uint64
	several bool // there are others
}

// oomDevices lists where memory ran out for good, the place of the detailed event first. Where it never did, that
// event, which was granted in the end, is all.
func oomDevices(s *report.Summary) []oomOn {
	first := s.DetailedOOM()
	list := []oomOn{{event: &s.OOM.Events[first], at: first}}
	for i := range s.OOM.Events {
		e := &s.OOM.Events[i]
		if e.Outcome != report.OOMFailed {
			continue
		}
		k := slices.IndexFunc(list, func(o oomOn) bool { return o.event.Device == e.Device })
		if k < 0 {
			k = len(list)
			list = append(list, oomOn{event: e, at: i})
		}
		list[k].times++
	}
	for i := range list {
		list[i].several = len(list) > 1
	}
	if len(list) == 1 { // the list of events may be cut
		list[0].times = s.OOM.Count
	}
	return list
}

// place is " on device 0", or what memory of the host's.
func (o *oomOn) place() string {
	if o.event.Device < 0 {
		return " of " + oomtext.HostWord(o.event) + " memory"
	}
	return " on " + layout.DeviceName(o.event.Device)
}

// requestWords says what could not be had, where and when.
func (o *oomOn) requestWords() string {
	e := o.event
	text := fmt.Sprintf("%s at %s: %s requested", o.place(), layout.Moment(e.TimeNS), layout.Bytes(e.RequestedBytes))
	if e.Site != "" {
		text += " at " + sanitize.Text(e.Site)
	}
	if e.TotalBytes > 0 {
		text += fmt.Sprintf(", %s of %s free", layout.Bytes(e.FreeBytes), layout.Bytes(e.TotalBytes))
	}
	return text
}

// timesSentence says how often it happened there, and which attempt succeeded.
func (o *oomOn) timesSentence(s *report.Summary) string {
	times := ""
	if o.times > 1 {
		times = fmt.Sprintf(" It happened %s times", layout.Count(o.times))
		if o.several {
			times += " there"
		}
		times += "."
	}
	return times + oomtext.AttemptSentence(&s.OOM, o.event.Device)
}

// oomSentence says what could not be had, and whether that was the end.
func oomSentence(s *report.Summary, v *report.Verdict, o *oomOn) string {
	text := "Out of memory" + o.requestWords()
	if what := partWords(v); what != "" && len(o.event.Through) > 0 {
		text += "; " + what
	}
	text += "." + o.timesSentence(s)
	switch {
	case v.Outcome == report.OutcomeCaughtOOM:
		return text + " The program handled that and exited with status 0."
	case s.Process.ExitStatus != nil:
		return text + fmt.Sprintf(" The program exited with status %d.", *s.Process.ExitStatus)
	}
	return text
}

// oomFindings tell that memory ran out and what filled the device, the first device in full.
func oomFindings(s *report.Summary, v *report.Verdict) (first, others []report.Finding) {
	id := "out-of-memory"
	if v.Outcome == report.OutcomeCaughtOOM {
		id = "caught-out-of-memory"
	}
	devices := oomDevices(s)
	for i := range devices {
		o := &devices[i]
		list, event := &others, fmt.Sprintf("oom.events[%d]", o.at)
		text := "Also out of memory" + o.requestWords() + "." + o.timesSentence(s)
		switch {
		case i == 0:
			list, text = &first, oomSentence(s, v, o)
		case i == maxOOMDevices:
			text = "Also out of memory on " + layout.Plural(uint64(len(devices)-i), "more device", "more devices") + "."
			others = append(others, report.NewFinding(id, text, 0, event))
			return first, others
		}
		*list = append(*list, report.NewFinding(id, text, o.event.RequestedBytes, "verdict.outcome", event))
		if text, bytes := o.shareSentence(v); text != "" {
			*list = append(*list, report.NewFinding("largest-holder", text, bytes, event+".ledgers"))
		}
	}
	return first, others
}

// shareSentence says what filled the device at that time, and how many bytes the largest owner held of it.
func (o *oomOn) shareSentence(v *report.Verdict) (text string, bytes uint64) {
	e := o.event
	l := oomtext.BestLedger(e)
	if l == nil || l.WholeBytes == 0 {
		return "", 0
	}
	inUse := layout.Bytes(l.WholeBytes) + " in use"
	if o.several {
		inUse += o.place()
	}
	var parts []string
	share := func(bytes uint64) float64 { return 100 * float64(bytes) / float64(l.WholeBytes) }
	if len(e.Categories) > 0 {
		if top := e.Categories[0]; top.Category != rules.Others && share(top.Bytes) >= 25 {
			bytes = top.Bytes
			parts = append(parts, fmt.Sprintf("%.0f%% was %s (%s)", share(bytes), categoryWords(top.Category),
				layout.Bytes(bytes)))
		}
	}
	if w := v.Owner; w != nil && e.DrivenByLibrary() {
		text := fmt.Sprintf("%.0f%% was allocated %s (%s", share(w.Bytes), ownerWords(w), layout.Bytes(w.Bytes))
		if v.Operator != nil && namesOperator(v) {
			text += ", " + sanitize.Text(v.Operator.Name)
		}
		parts = append(parts, text+")")
		return fmt.Sprintf("Of the %s, %s.", inUse, strings.Join(parts, "; ")), w.Bytes
	}
	for _, r := range l.Rows {
		if r.Owner == report.OwnerBlocks && report.KnownKey(r.Key) {
			bytes = r.Bytes
			w := &report.VerdictShare{By: l.By, Name: cmp.Or(r.Label, r.Key)}
			text := fmt.Sprintf("%.0f%% was allocated %s (%s)", share(bytes), ownerWords(w), layout.Bytes(bytes))
			if bytes == l.WholeBytes {
				text = "all was allocated " + ownerWords(w)
			}
			parts = append(parts, text)
			break
		}
	}
	if len(parts) == 0 {
		return "", 0
	}
	return fmt.Sprintf("Of the %s, %s.", inUse, strings.Join(parts, "; ")), bytes
}
