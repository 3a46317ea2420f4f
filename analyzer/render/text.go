package render

import (
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// Text writes a summary for people: the answer and what it rests on, on one screen; all of it with Options.Details, or
// where something was asked for.
func Text(w io.Writer, s *report.Summary, o Options) error {
	var err error
	if s.Asked || s.At != nil || o.Details {
		p := newPage(w, o)
		writeDetails(p, s)
		err = p.failure()
	} else {
		err = firstScreen(w, s, o)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// details is everything that is known, or that was asked for.
func writeDetails(p *page, s *report.Summary) {
	writeHeading(p, s)
	writeOOM(p, s)
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

// begin says whose report it is.
func writeBeginning(p *page, s *report.Summary) {
	name := "memtrace report"
	if p.Path != "" {
		name += "  " + visible.Text(p.Path)
	}
	p.title(name)
	p.gap()
	p.field(whose(s.Process))
}

func writeHeading(p *page, s *report.Summary) {
	writeBeginning(p, s)
	writeProcess(p, s)
	if text := software(s.Versions); text != "" {
		p.field("software", text)
	}
	for _, d := range s.Devices {
		p.field(deviceName(d.Index), device(d, s.NullGPU))
	}
	if s.Health.Complete && len(s.Health.Unseen) == 0 {
		p.field("health", health(s))
	} else {
		p.styled(alarm, "health", health(s))
	}
	writeSelection(p, s)
	p.gap()
}

// peaks is the table of high-water marks: one line per device, and one for all where there are several.
func writePeaks(p *page, s *report.Summary) {
	if s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.title("Peak")
	p.gap()
	writePeakTable(p, s)
	if text := requested(s); text != "" {
		p.field("requested", text)
		p.gap()
	}
}

// requested says what the program asked its framework for at the peak, "" if that is not known of most.
func requested(s *report.Summary) string {
	r := s.Framework.RequestedAtPeak
	if r == nil || r.Bytes < s.Framework.PeakBytes/2 {
		return ""
	}
	text := fmt.Sprintf("%s; %s (%s) of the blocks is rounding and unsplit rests", Bytes(r.Bytes), Bytes(r.RestBytes), percentOf(r.RestBytes, s.Framework.PeakBytes))
	if r.UnknownBytes > 0 {
		text += fmt.Sprintf("; of %s it is not known", Bytes(r.UnknownBytes))
	}
	return text
}

func writePeakTable(p *page, s *report.Summary) {
	if s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	withFramework := !s.Framework.Empty()
	columns := []column{{}}
	when := column{title: "when", right: true, optional: 1}
	if withFramework {
		columns = append(columns, column{title: FrameworkName(s.Versions), right: true}, when, column{title: "reserved", right: true})
	}
	columns = append(columns, column{title: "driver", right: true}, when, column{title: "of device", right: true, optional: 2})
	p.rangedTable(columns, func(f figure) [][]cell { return peakRows(s, withFramework, f) })
	p.gap()
	writeLost(p, s)
}

func peakRows(s *report.Summary, withFramework bool, f figure) (rows [][]cell) {
	add := func(name string, framework, driver report.Level, reserved string, total uint64) {
		row := []cell{{text: name}}
		if withFramework {
			row = append(row, levelPeak(framework, s.Bounds, f)...)
			row = append(row, cell{text: reserved})
		}
		row = append(row, levelPeak(driver, s.Bounds, f)...)
		share := ""
		if total > 0 {
			share = percentOf(driver.PeakBytes, total)
		}
		rows = append(rows, append(row, cell{text: share}))
	}
	for _, d := range s.Devices {
		if !d.Driver.Empty() || !d.Framework.Empty() {
			add(deviceName(d.Index), d.Framework, d.Driver, f(d.ReservedBytesPeakLower, d.ReservedBytesPeak, s.Bounds), d.TotalBytes)
		}
	}
	if len(rows) > 1 {
		add("total", s.Framework, s.Driver, "", 0)
	}
	return rows
}

func levelPeak(l report.Level, b *report.Bounds, f figure) []cell {
	if l.Empty() {
		return []cell{{text: "none"}, {}}
	}
	return []cell{{text: f(l.PeakBytesLower, l.PeakBytes, b), style: strong}, {text: moment(l.PeakTimeNS)}}
}

// moment is the state at the moment that was asked for.
func writeMoment(p *page, s *report.Summary) {
	if s.At == nil {
		return
	}
	p.title(fmt.Sprintf("At %s, %s", visible.Text(s.At.What), moment(s.At.TimeNS)))
	p.gap()
	columns := []column{{}, {title: FrameworkName(s.Versions), right: true}, {title: "reserved", right: true}, {title: "driver", right: true}}
	p.rangedTable(columns, func(f figure) [][]cell { return momentRows(s, f) })
	p.gap()
}

func momentRows(s *report.Summary, f figure) (rows [][]cell) {
	live := func(l report.MomentLevel) string {
		if s.At.BeforeLoss {
			return Bytes(l.LiveBytes)
		}
		return f(l.LiveBytesLower, l.LiveBytes, s.Bounds)
	}
	for _, d := range s.At.Devices {
		rows = append(rows, []cell{{text: deviceName(d.Index)}, {text: live(d.Framework)}, {text: Bytes(d.ReservedBytes)}, {text: live(d.Driver)}})
	}
	if len(rows) > 1 {
		rows = append(rows, []cell{{text: "total"}, {text: live(s.At.Framework)}, {}, {text: live(s.At.Driver)}})
	}
	return rows
}

// next proposes the command that shows what this report does not.
func writeNext(p *page, s *report.Summary) {
	if nothingSeen(s) {
		return
	}
	p.gap()
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
		if s.At != nil {
			proposal = "memtrace report --json "
		}
	}
	p.line("%s %s", p.paint(strong, "Next:"), proposal+windowFlags(s)+ShellWord(path))
}

func modulesKnown(s *report.Summary) bool { return s.Training != nil && s.Training.Modules != nil }

// nothingSeen reports whether no table has anything to show.
func nothingSeen(s *report.Summary) bool {
	return s.Driver.Empty() && s.Framework.Empty() && len(s.Other) == 0
}
