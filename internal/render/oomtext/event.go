// Package oomtext prints out-of-memory events: the refused requests, the owners of the memory then, advice, and the
// outcome of later attempts. The preloaded library prints it when that happens, and reports contain it. It may import
// layout, phrase and the report's types, and nothing that only readers of traces need.
package oomtext

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// maxLines bounds the OOM events that the text report lists besides the one printed in full.
const maxLines = 5

// WriteEvents prints the first event at which memory ran out for good, or was short, in full, and lists the others.
func WriteEvents(p *layout.Page, s *report.Summary) {
	list := s.OOM.Events
	if len(list) == 0 {
		return
	}
	first := s.DetailedOOM()
	writeEvent(p, &list[first], layout.Framework(s.Versions))
	WriteKeptBy(p, s.KeptBy)
	writeOthers(p, &s.OOM, first)
	p.Gap()
	writeRetries(p, s.OOM.Retries)
}

// writeOthers lists the events besides the one at first. Those that were granted in the end are one line.
func writeOthers(p *layout.Page, o *report.OOM, first int) {
	var lines []string
	var granted []int
	for i := range o.Events {
		switch e := &o.Events[i]; {
		case i == first:
		case e.Outcome == report.OOMRecovered:
			granted = append(granted, i)
		case len(lines) < maxLines:
			lines = append(lines, oneLine(i, e))
		}
	}
	told := uint64(1 + len(lines) + len(granted))
	switch len(granted) {
	case 0:
	case 1:
		lines = append(lines, oneLine(granted[0], &o.Events[granted[0]]))
	default:
		lines = append(lines, grantedLine(o.Events, granted))
	}
	if len(lines) > 0 {
		p.Title("Other out-of-memory events")
		p.Gap()
	}
	for _, line := range lines {
		p.Item(line)
	}
	if more := o.Count + o.RecoveredCount - told; more > 0 {
		p.Field("", "and "+layout.Plural(more, "time", "times")+" more")
	}
}

// grantedLine is events that were granted in the end, of which there are several.
func grantedLine(list []report.OOMEvent, granted []int) string {
	var asked, released uint64
	for _, i := range granted {
		asked, released = max(asked, list[i].RequestedBytes), max(released, list[i].ReleasedBytes)
	}
	from, to := granted[0], granted[len(granted)-1]
	return fmt.Sprintf("%s requests of at most %s were granted after at most %s were given back: the first oom:%d at %s, the last oom:%d at %s",
		layout.Count(uint64(len(granted))), layout.Bytes(asked), layout.Bytes(released), from+1,
		layout.Moment(list[from].TimeNS), to+1, layout.Moment(list[to].TimeNS))
}

// oneLine is the event at i in one line.
func oneLine(i int, e *report.OOMEvent) string {
	text := fmt.Sprintf("oom:%d at %s: %s requested on %s", i+1, layout.Moment(e.TimeNS),
		layout.Bytes(e.RequestedBytes), layout.DeviceName(e.Device))
	if e.Tag != "" {
		text += ", under " + sanitize.Text(e.Tag)
	}
	if e.Outcome == report.OOMRecovered {
		return text + "; granted after " + layout.Bytes(e.ReleasedBytes) + " were given back"
	}
	return text
}

// writeEvent prints one event: the request and its code, the owners of the memory, the idle memory, and advice.
func writeEvent(p *layout.Page, e *report.OOMEvent, framework string) {
	title := fmt.Sprintf("Out of memory on %s at %s", layout.DeviceName(e.Device), layout.Moment(e.TimeNS))
	switch {
	case e.Outcome == report.OOMRecovered:
		title = fmt.Sprintf("Memory ran short on %s at %s", layout.DeviceName(e.Device), layout.Moment(e.TimeNS))
	case e.Device < 0:
		title = fmt.Sprintf("Out of %s memory at %s", HostWord(e), layout.Moment(e.TimeNS))
	}
	p.Line("%s", p.Paint(layout.Alarm, title))
	p.Gap()
	p.Field("requested", requestWords(e, framework))
	p.Field("by", callerWords(e))
	if e.Detailed {
		p.Field(layout.DeviceName(e.Device), deviceWords(e))
	}
	if e.LostRecords > 0 {
		p.Styled(layout.Alarm, "lost", lostWords(e))
	}
	if a := e.Allocator; a != nil {
		p.Field("cached", cacheWords(a, e.RequestedBytes, framework))
	}
	if c := e.Composition; c != nil {
		p.Field("of it", compositionWords(c))
	}
	if s := e.Since; s != nil {
		p.Field("lately", sinceWords(s))
	}
	if text := stepWords(e.StepBytes); text != "" {
		p.Field("steps", text)
	}
	p.Gap()
	writeCategories(p, e, framework)
	writeOwners(p, e, framework)
	writeAdvice(p, e)
}

// HostWord is the name of the host memory that ran out.
func HostWord(e *report.OOMEvent) string {
	if e.Memory == "registered" || e.Memory == "host" {
		return "pinned host"
	}
	return sanitize.Text(e.Memory)
}

func requestWords(e *report.OOMEvent, framework string) string {
	text := layout.Bytes(e.RequestedBytes)
	if e.Memory != "device" {
		text += " of " + sanitize.Text(e.Memory) + " memory"
	}
	if e.Level == "framework" {
		text += ", a block of " + framework + "'s"
		if e.DriverRequestedBytes > 0 && e.DriverRequestedBytes != e.RequestedBytes {
			text += ", for which it wanted " + layout.Bytes(e.DriverRequestedBytes) + " from the driver"
		}
	}
	if e.Attempts == 0 {
		return text + "; it gave up without asking the driver"
	}
	if e.Attempts > 1 {
		text += "; the driver refused " + layout.Plural(e.Attempts, "time", "times") + " within " +
			layout.Duration(e.TimeNS-e.FirstTimeNS)
	} else {
		text += "; the driver refused"
	}
	if e.ReleasedBytes > 0 {
		text += ", " + layout.Bytes(e.ReleasedBytes) + " were given back in between"
	}
	if e.Outcome == report.OOMRecovered {
		text += ", and then it was granted"
	}
	return text
}

func callerWords(e *report.OOMEvent) string {
	text := "thread " + sanitize.Text(e.Thread)
	if e.Site != "" {
		text = sanitize.Text(e.Site) + ", " + text
	}
	if e.Tag != "" {
		text += ", under tag " + sanitize.Text(e.Tag)
	}
	if e.Call != "" {
		text += ", by " + sanitize.Text(e.Call)
	}
	if e.Caller != "" {
		text += " called from " + sanitize.Text(e.Caller)
	}
	return text
}

func deviceWords(e *report.OOMEvent) string {
	text := layout.Bytes(e.UsedBytes) + " in use"
	if e.TotalBytes > 0 {
		text += " of " + layout.Bytes(e.TotalBytes)
	}
	if e.Sample == nil {
		if e.TotalBytes > 0 {
			text += ", so at most " + layout.Bytes(e.FreeBytes) + " free"
		}
		return text + "; the device itself was not asked, so its context, its code and other processes are missing here"
	}
	text += ", " + layout.Bytes(e.FreeBytes) + " free"
	if e.Sample.UsedBytes == e.UsedBytes {
		return text + "; NVML agrees"
	}
	return text + fmt.Sprintf("; the device reported %s in use at %s", layout.Bytes(e.Sample.UsedBytes),
		layout.Moment(e.Sample.TimeNS))
}

// lostWords describes how reliable the figures below are.
func lostWords(e *report.OOMEvent) string {
	text := layout.Plural(e.LostRecords, "record was", "records were") +
		" lost before that: owners are as recorded, and may hold less (a free is missing) or more (an allocation is)"
	if e.Sample != nil {
		text += "; what the device itself says is right"
	}
	return text
}

func cacheWords(a *report.OOMAllocator, requested uint64, framework string) string {
	verbs := "%s holds %s and has %s of it in blocks"
	if strings.HasSuffix(framework, "pools") {
		verbs = "%s hold %s and have %s of it in blocks"
	}
	text := fmt.Sprintf(verbs, framework, layout.Bytes(a.ReservedBytes), layout.Bytes(a.AllocatedBytes))
	if a.IdleBytes == 0 {
		return text + ": nothing is cached but idle"
	}
	text += fmt.Sprintf(": %s are cached but idle", layout.Bytes(a.IdleBytes))
	if a.Pieces.FreePieces > 0 {
		text += fmt.Sprintf(", in %s; the largest free block is %s", layout.Plural(a.Pieces.FreePieces, "piece",
			"pieces"), layout.Bytes(a.Pieces.LargestFreeBytes))
		if largest := a.Pieces.LargestFreeBytes; largest < requested {
			text += fmt.Sprintf(", %.1f%% of the request", 100*float64(largest)/float64(requested))
		}
	}
	return text
}

func sinceWords(s *report.OOMGrowth) string {
	text := fmt.Sprintf("%s came since %s at %s and are still held", layout.Bytes(s.Bytes), sanitize.Text(s.What),
		layout.Moment(s.TimeNS))
	const shown = 3
	var parts []string
	for _, row := range s.Rows[:min(shown, len(s.Rows))] {
		parts = append(parts, sanitize.Text(row.Key)+" "+layout.Bytes(row.Bytes))
	}
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text
}

// stepWords shows what was live when the latest steps began.
func stepWords(steps []uint64) string {
	if len(steps) < 2 {
		return ""
	}
	var parts []string
	for _, bytes := range steps {
		parts = append(parts, layout.Bytes(bytes))
	}
	return "the last " + layout.Plural(uint64(len(steps)), "step", "steps") + " began with " + strings.Join(parts, ", ")
}

func writeAdvice(p *layout.Page, e *report.OOMEvent) {
	if len(e.Advice) == 0 {
		return
	}
	p.Title("What to try")
	p.Gap()
	for _, a := range e.Advice {
		p.Item(sanitize.Text(a.Text))
	}
	p.Gap()
}

// Write writes one OOM event as a self-contained text.
func Write(w io.Writer, r *report.OOMReport, o layout.Options) error {
	p := layout.NewPage(w, o)
	writeEvent(p, &r.Event, layout.Framework(r.Versions))
	WriteKeptBy(p, r.KeptBy)
	p.Title("The run")
	p.Gap()
	p.Field("command", cmp.Or(layout.Command(r.Process), "unknown"))
	p.Field("run", layout.Process(r.Process))
	if started, err := time.Parse(time.RFC3339Nano, r.Process.Started); err == nil {
		p.Field("happened", started.Add(time.Duration(r.Event.TimeNS)).Format("2006-01-02 15:04:05 MST"))
	}
	if text := layout.Software(r.Versions); text != "" {
		p.Field("software", text)
	}
	for _, d := range r.Devices {
		p.Field(layout.DeviceName(d.Index), layout.Device(d, r.NullGPU))
	}
	p.Gap()
	if o.Path != "" {
		p.Line("%s memtrace report --at oom %s", o.Paint(layout.Strong, "Next:"), layout.ShellWord(o.Path))
	}
	if p.Err() != nil {
		return fmt.Errorf("write the OOM text: %w", p.Err())
	}
	return nil
}

// RanOut adds to an exit status other than 0 that memory had run out before, if it had.
func RanOut(s *report.Summary, ended string) string {
	status := s.Process.ExitStatus
	if status == nil || *status == 0 || s.OOM.Count == 0 {
		return ended
	}
	if s.Versions["torch"] != "" {
		return ended + " after torch.OutOfMemoryError"
	}
	return ended + " after running out of memory"
}

// Sheets are the first event at which memory ran out, or was short, and a list of the others; nil if there is none.
func Sheets(s *report.Summary, rows int) []layout.Sheet {
	return layout.SheetsOf(rows, func(p *layout.Page) { WriteEvents(p, s) })
}
