package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// Text writes a summary for people: the answer and what it rests on, on one screen; all of it with Options.Details, or
// where something was asked for.
func Text(w io.Writer, s *report.Summary, o Options) error {
	var err error
	if s.Asked || s.At != nil || o.Details {
		p := &page{w: w, o: o}
		p.details(s)
		err = p.err
	} else {
		err = firstScreen(w, s, o)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// details is everything that is known, or that was asked for.
func (p *page) details(s *report.Summary) {
	p.heading(s)
	p.oom(s)
	p.peaks(s)
	p.moment(s)
	p.window(s)
	for _, by := range s.By {
		if v := s.CategoriesBy(by); v != nil {
			p.categories(s, v)
		} else {
			p.ledger(s, by)
		}
	}
	p.training(s)
	p.sites(s)
	p.ownAccounts(s)
	p.deviceLedgers(s)
	p.allocator(s)
	p.totals(s)
	p.sizes(s)
	p.remarks(s)
	p.next(s)
}

// begin says whose report it is.
func (p *page) begin(s *report.Summary) {
	name := "memtrace report"
	if p.o.Path != "" {
		name += "  " + clean(p.o.Path)
	}
	p.title(name)
	p.gap()
	p.field(whose(s.Process))
}

func (p *page) heading(s *report.Summary) {
	p.begin(s)
	p.process(s)
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
	p.selection(s)
	p.gap()
}

var softwareNames = []struct{ key, name string }{
	{"torch", "PyTorch"}, {"mxnet", "MXNet"}, {"cuda_driver", "CUDA driver"}, {"cuda_runtime", "CUDA runtime"}, {"python", "Python"},
}

// software lists versions, the well-known ones first.
func software(versions map[string]string) string {
	var parts []string
	known := map[string]bool{"memtrace": true}
	for _, n := range softwareNames {
		known[n.key] = true
		if v := versions[n.key]; v != "" {
			parts = append(parts, n.name+" "+clean(v))
		}
	}
	var rest []string
	for key, v := range versions {
		if !known[key] {
			rest = append(rest, clean(key+" "+v))
		}
	}
	slices.Sort(rest)
	return strings.Join(append(parts, rest...), ", ")
}

// FrameworkName is what to call the framework level of a run with these versions.
func FrameworkName(versions map[string]string) string {
	for _, n := range softwareNames[:2] {
		if versions[n.key] != "" {
			return n.name
		}
	}
	return "framework"
}

func frameworkName(s *report.Summary) string { return FrameworkName(s.Versions) }

func deviceName(index int16) string {
	if index < 0 {
		return "no device"
	}
	return fmt.Sprintf("device %d", index)
}

func device(d report.Device, null bool) string {
	text := orUnknown(clean(d.Name))
	if d.Index < 0 {
		text = "memory whose device is not known"
	}
	if d.TotalBytes > 0 {
		text += ", " + Bytes(d.TotalBytes)
	}
	if null {
		text += " (no hardware)"
	}
	return text
}

// peaks is the table of high-water marks: one line per device, and one for all where there are several.
func (p *page) peaks(s *report.Summary) {
	if s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	p.title("Peak")
	p.gap()
	p.peakTable(s)
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

func (p *page) peakTable(s *report.Summary) {
	if s.Driver.Empty() && s.Framework.Empty() {
		return
	}
	withFramework := !s.Framework.Empty()
	columns := []column{{}}
	when := column{title: "when", right: true, optional: 1}
	if withFramework {
		columns = append(columns, column{title: frameworkName(s), right: true}, when, column{title: "reserved", right: true})
	}
	columns = append(columns, column{title: "driver", right: true}, when, column{title: "of device", right: true, optional: 2})
	p.rangedTable(columns, func(f figure) [][]cell { return peakRows(s, withFramework, f) })
	p.gap()
	p.lost(s)
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
func (p *page) moment(s *report.Summary) {
	if s.At == nil {
		return
	}
	p.title(fmt.Sprintf("At %s, %s", clean(s.At.What), moment(s.At.TimeNS)))
	p.gap()
	columns := []column{{}, {title: frameworkName(s), right: true}, {title: "reserved", right: true}, {title: "driver", right: true}}
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
func (p *page) next(s *report.Summary) {
	if nothingSeen(s) {
		return
	}
	p.gap()
	path := p.o.Path
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
	p.line("%s %s", p.o.paint(strong, "Next:"), proposal+windowFlags(s)+shellWord(clean(path)))
}

func modulesKnown(s *report.Summary) bool { return s.Training != nil && s.Training.Modules != nil }

// nothingSeen reports whether no table has anything to show.
func nothingSeen(s *report.Summary) bool {
	return s.Driver.Empty() && s.Framework.Empty() && len(s.Other) == 0
}

// shellWord quotes a file name that a shell would take apart.
func shellWord(s string) string {
	if !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]{}~`!#") && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
