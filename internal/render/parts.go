package render

import (
	"io"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/render/oomtext"
	"memtrace/internal/sanitize"
)

// What other forms of a report have in common with the text. All texts are escaped for a terminal.

// writeProcess prints where the program ran and how it ended. For an imported trace that is unknown.
func writeProcess(p *layout.Page, s *report.Summary) {
	if s.Process.Imported == "" {
		p.Field("run", runWords(s))
	}
}

func runWords(s *report.Summary) string {
	return layout.Process(s.Process) + "; " + oomtext.RanOut(s, layout.Ending(s.Process))
}

// Facts describes the process, the device, and whether the trace is complete.
func Facts(s *report.Summary) []layout.Fact {
	name, value := layout.Source(s.Process)
	list := []layout.Fact{{Name: name, Value: value, Long: s.Process.Imported == ""}}
	if s.Process.Imported == "" {
		list = append(list, layout.Fact{Name: "run", Value: runWords(s)})
	}
	if text := layout.Software(s.Versions); text != "" {
		list = append(list, layout.Fact{Name: "software", Value: text, Long: true})
	}
	for _, d := range s.Devices {
		if !d.Driver.Empty() || !d.Framework.Empty() {
			list = append(list, layout.Fact{Name: layout.DeviceName(d.Index), Value: layout.Device(d, s.NullGPU),
				Long: true})
		}
	}
	list = append(list, layout.Fact{Name: "trace", Value: layout.SummaryHealth(s), Alarm: !s.Health.Complete ||
		len(s.Health.Unseen) > 0})
	if s.Window != nil {
		list = append(list, layout.WindowFact(s))
	}
	if only := layout.Filters(s); len(only) > 0 {
		list = append(list, layout.Fact{Name: "only", Value: sanitize.Text(strings.Join(only, ", "))})
	}
	return list
}

// Owner is a row of a table of owners.
type Owner struct {
	Name   string
	Bytes  uint64
	Share  string // of the peak; "" for memory outside of it
	Blocks bool   // blocks of the level, not memory of its allocator or of other libraries
}

// Owners lists a ledger's rows, those beyond rows joined.
func Owners(s *report.Summary, l *report.Ledger, rows int) []Owner {
	p := layout.NewPage(io.Discard, layout.Options{Rows: rows})
	return ownersOf(ledgerOwners(p, s, l, func(list []owner) []owner { return coverOwners(l.By, list, rows, 0) }),
		s.Main().PeakBytes)
}

// PeakCategories lists what a training program's memory was for at its highest peak, nil if that is not known.
func PeakCategories(s *report.Summary, rows int) []Owner {
	t := s.Training
	if !trains(t) || t.Highest < 0 || !sorted(t) {
		return nil
	}
	var list []owner
	held := t.Iterations[t.Highest].Peak.Held
	for _, i := range layout.Heaviest(held) {
		list = append(list, owner{name: sanitize.Text(layout.CategoryWord(t.Categories[i])), bytes: held[i],
			style: layout.Blocks})
	}
	return ownersOf(coverOwners("category", list, rows, 0), t.Iterations[t.Highest].Peak.Bytes)
}

// PeakModules divides the peak by module, repeated modules joined; nil if there are no modules.
func PeakModules(s *report.Summary, rows int) []Owner {
	l := s.Ledger("module")
	if l == nil || !modulesKnown(s) {
		return nil
	}
	list := peakModules(s, l, rows, (layout.Options{}).Each)
	for i := range list {
		if list[i].each != "" {
			list[i].name += "  " + list[i].each
		}
	}
	return ownersOf(list, s.Main().PeakBytes)
}

func ownersOf(list []owner, whole uint64) []Owner {
	shares, _ := sharesOf(list, whole)
	owners := make([]Owner, len(list))
	for i, o := range list {
		owners[i] = Owner{Name: o.name, Bytes: o.bytes, Share: shares[i],
			Blocks: o.style == layout.Blocks}
	}
	return owners
}

// Advice is what to try if memory ran out, nil if it did not.
func Advice(s *report.Summary) []string {
	e := fatalOOM(s)
	if e == nil {
		return nil
	}
	var list []string
	for _, a := range e.Advice {
		list = append(list, sanitize.Text(a.Text))
	}
	return list
}

// Notes are what the reader needs to interpret the figures.
func Notes(s *report.Summary) []string {
	list := make([]string, len(s.Notes))
	for i, note := range s.Notes {
		list[i] = sanitize.Text(note)
	}
	return list
}
