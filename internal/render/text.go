// Package render writes summaries for people and for programs, on the pages of layout: the report as text, in its short
// form and with all its tables, the tables that are requested by name, as text and as CSV, differences and the
// processes of one run, and JSON. It may import oomtext, layout, and the types of reports; it computes nothing that
// another package could need.
package render

import (
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/render/oomtext"
	"memtrace/internal/sanitize"
)

// Text writes a summary for people: the answer and its basis, on one screen; all of it with Options.Details, or if
// parts were requested.
func Text(w io.Writer, s *report.Summary, o layout.Options) error {
	var err error
	if s.Asked || s.At != nil || o.Details {
		p := layout.NewPage(w, o)
		writeDetails(p, s)
		err = p.Err()
	} else {
		err = firstScreen(w, s, o)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// writeDetails writes everything that is known, or that was requested.
func writeDetails(p *layout.Page, s *report.Summary) {
	writeHeading(p, s)
	oomtext.WriteEvents(p, s)
	writePeaks(p, s)
	writeMoment(p, s)
	writeWindow(p, s)
	for _, by := range s.By {
		if v := s.CategoriesBy(by); v != nil {
			writeCategories(p, s, v)
		} else {
			writeLedger(p, s, by)
		}
	}
	writeTraining(p, s)
	writeSites(p, s)
	writeOwnAccounts(p, s)
	writeDeviceLedgers(p, s)
	writeAllocator(p, s)
	writeTotals(p, s)
	writeSizes(p, s)
	writeRemarks(p, s)
	writeNext(p, s)
}

func writeHeading(p *layout.Page, s *report.Summary) {
	layout.WriteBeginning(p, s)
	writeProcess(p, s)
	if text := layout.Software(s.Versions); text != "" {
		p.Field("software", text)
	}
	for _, d := range s.Devices {
		p.Field(layout.DeviceName(d.Index), layout.Device(d, s.NullGPU))
	}
	if s.Health.Complete && len(s.Health.Unseen) == 0 {
		p.Field("trace", layout.SummaryHealth(s))
	} else {
		p.Styled(layout.Alarm, "trace", layout.SummaryHealth(s))
	}
	layout.WriteSelection(p, s)
	p.Gap()
}

// writePeaks prints the table of high-water marks: one line per device, and one for all where there are several.
func writePeaks(p *layout.Page, s *report.Summary) {
	if s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.Title("Peak")
	p.Gap()
	writePeakTable(p, s)
	if text := requested(s); text != "" {
		p.Field("requested", text)
		p.Gap()
	}
}

// requested describes the bytes that the program requested from its framework at the peak, "" if they are unknown for
// most.
func requested(s *report.Summary) string {
	r := s.Framework.RequestedAtPeak
	if r == nil || r.Bytes < s.Framework.PeakBytes/2 {
		return ""
	}
	text := fmt.Sprintf("%s; %s (%s) of the blocks is rounding and unsplit remainders", layout.Bytes(r.Bytes),
		layout.Bytes(r.RestBytes), layout.PercentOf(r.RestBytes, s.Framework.PeakBytes))
	if r.UnknownBytes > 0 {
		text += fmt.Sprintf(" (unknown for %s)", layout.Bytes(r.UnknownBytes))
	}
	return text
}

func writePeakTable(p *layout.Page, s *report.Summary) {
	if s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	withFramework := !s.Framework.Empty()
	columns := []layout.Column{{}}
	when := layout.Column{Title: "when", Right: true, Optional: 1}
	if withFramework {
		columns = append(columns, layout.Column{Title: layout.FrameworkName(s.Versions), Right: true}, when,
			layout.Column{Title: "reserved", Right: true})
	}
	columns = append(columns, layout.Column{Title: "driver", Right: true}, when,
		layout.Column{Title: "of device", Right: true, Optional: 2})
	p.RangedTable(columns, func(f layout.Figure) [][]layout.Cell { return peakRows(s, withFramework, f) })
	p.Gap()
	writeLost(p, s)
}

func peakRows(s *report.Summary, withFramework bool, f layout.Figure) (rows [][]layout.Cell) {
	add := func(name string, framework, driver report.Level, reserved string, total uint64) {
		row := []layout.Cell{{Text: name}}
		if withFramework {
			row = append(row, levelPeak(framework, s.Bounds, f)...)
			row = append(row, layout.Cell{Text: reserved})
		}
		row = append(row, levelPeak(driver, s.Bounds, f)...)
		share := ""
		if total > 0 {
			share = layout.PercentOf(driver.PeakBytes, total)
		}
		rows = append(rows, append(row, layout.Cell{Text: share}))
	}
	for _, d := range s.Devices {
		if !d.Driver.Empty() || !d.Framework.Empty() {
			add(layout.DeviceName(d.Index), d.Framework, d.Driver, f(d.ReservedBytesPeakLower, d.ReservedBytesPeak,
				s.Bounds), d.TotalBytes)
		}
	}
	if len(rows) > 1 {
		add("total", s.Framework, s.Driver, "", 0)
	}
	return rows
}

func levelPeak(l report.Level, b *report.Bounds, f layout.Figure) []layout.Cell {
	if l.Empty() {
		return []layout.Cell{{Text: "none"}, {}}
	}
	return []layout.Cell{{Text: f(l.PeakBytesLower, l.PeakBytes, b), Style: layout.Strong},
		{Text: layout.Moment(l.PeakTimeNS)}}
}

// writeMoment prints the state at the requested moment.
func writeMoment(p *layout.Page, s *report.Summary) {
	if s.At == nil {
		return
	}
	p.Title(fmt.Sprintf("At %s, %s", sanitize.Text(s.At.What), layout.Moment(s.At.TimeNS)))
	p.Gap()
	columns := []layout.Column{{}, {Title: layout.FrameworkName(s.Versions), Right: true},
		{Title: "reserved", Right: true}, {Title: "driver", Right: true}}
	p.RangedTable(columns, func(f layout.Figure) [][]layout.Cell { return momentRows(s, f) })
	p.Gap()
}

func momentRows(s *report.Summary, f layout.Figure) (rows [][]layout.Cell) {
	live := func(l report.MomentLevel) string {
		if s.At.BeforeLoss {
			return layout.Bytes(l.LiveBytes)
		}
		return f(l.LiveBytesLower, l.LiveBytes, s.Bounds)
	}
	for _, d := range s.At.Devices {
		rows = append(rows, []layout.Cell{{Text: layout.DeviceName(d.Index)}, {Text: live(d.Framework)},
			{Text: layout.Bytes(d.ReservedBytes)}, {Text: live(d.Driver)}})
	}
	if len(rows) > 1 {
		rows = append(rows, []layout.Cell{{Text: "total"}, {Text: live(s.At.Framework)}, {}, {Text: live(s.At.Driver)}})
	}
	return rows
}

// writeNext proposes the command that shows what this report does not.
func writeNext(p *layout.Page, s *report.Summary) {
	if hasNoMemory(s) {
		return
	}
	p.Gap()
	path := p.Path
	if path == "" {
		path = "FILE"
	}
	proposal := "memtrace report --by library,api,thread "
	if s.Sites != nil && worthShowing(s.Sites) && !slices.Contains(s.By, "site") {
		proposal = "memtrace report --by site,library,api "
	}
	if modulesKnown(s) {
		proposal = "memtrace report --view modules "
	}
	if s.Asked {
		proposal = "memtrace report --at exit "
		if s.At != nil || s.FromProfile {
			proposal = "memtrace report --json "
		}
	}
	p.Line("%s %s", p.Paint(layout.Strong, "Next:"), proposal+layout.WindowFlags(s)+layout.ShellWord(path))
}

func modulesKnown(s *report.Summary) bool { return s.Training != nil && s.Training.Modules != nil }

// hasNoMemory reports whether no table has anything to show.
func hasNoMemory(s *report.Summary) bool {
	return s.Driver.Empty() && s.Framework.Empty() && len(s.Other) == 0
}

// nextCommand is a command that shows more, and what.
type nextCommand struct{ command, shows string }

// nextCommands are the commands to run next, the most useful first; none if the trace is empty.
func nextCommands(s *report.Summary, o layout.Options) []nextCommand {
	path := o.Path
	if hasNoMemory(s) && len(s.Notes) == 0 {
		return nil
	}
	if path == "" {
		path = "FILE"
	}
	path = layout.WindowFlags(s) + layout.ShellWord(path)
	list := []nextCommand{{"memtrace report --details " + path, "call stacks, device ledger, lifetimes, notes"}}
	switch {
	case s.OOM.Count > 0 && !s.FromProfile:
		list = append(list, nextCommand{"memtrace report --at oom " + path, "every table at the moment memory ran out"})
	case modulesKnown(s):
		list = append(list, nextCommand{"memtrace report --view modules " + path, "by layer of the model"})
	case s.Sites != nil && worthShowing(s.Sites) && !slices.Contains(s.By, "site"):
		list = append(list, nextCommand{"memtrace report --by site " + path, "by line of the program"})
	}
	if s.Versions["torch"] == "" {
		return list
	}
	switch {
	case s.Process.Ended == report.EndedRunning && !s.FromProfile || o.StillRuns:
		list = append(list, nextCommand{fmt.Sprintf("memtrace ctl %d referrers", s.Process.PID),
			"what keeps its tensors alive"})
	case len(s.Growing()) > 0 && (s.KeptBy == nil || len(s.KeptBy.Holders) == 0 || s.KeptBy.Holders[0].Garbage):
		list = append(list, nextCommand{"memtrace ctl PID referrers",
			"in the next run, before it ends: what keeps its tensors alive"})
	}
	return list
}
