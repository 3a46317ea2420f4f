package top

import (
	"slices"
	"strconv"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/profile"
	"memtrace/internal/rules/rulefile"
)

const (
	levelDriver    = "driver"
	levelFramework = "framework"
)

var levels = []string{levelDriver, levelFramework}

// devicePart is what a recorded process has on one device.
type devicePart struct {
	Index      int16 // as the process counts
	UUID       string
	By         string
	Level      string                  // whose blocks the rows divide
	Levels     map[string]report.Level // by levelDriver and levelFramework; without those that were not used
	Slack      int64                   // held by the framework's allocator, in no block
	Rows       []report.LedgerRow
	Categories []report.Category
}

// partOf joins a summary's levels of a device and its part of the moment.
func partOf(d *report.Device, part *report.DevicePart, by string) devicePart {
	p := devicePart{Index: d.Index, UUID: d.UUID, By: by, Levels: make(map[string]report.Level)}
	for name, level := range map[string]report.Level{levelDriver: d.Driver, levelFramework: d.Framework} {
		if !level.Empty() {
			p.Levels[name] = level
		}
	}
	if l := part.Ledger(by); l != nil {
		p.Level, p.Rows, p.Slack = l.Level, l.Rows, l.SlackBytes
	}
	if c := part.CategoriesBy(categoryGrouping); c != nil {
		p.Categories = c.Rows
	}
	return p
}

// requestParts adds to options what a devicePart needs. Without a grouping, owners are tags where the program sets them
// and lines of the program elsewhere: the best of all groupings may change while a program runs, and with it the names
// of all series.
func requestParts(o *analyzer.Options, by string) error {
	if err := addCategories(o); err != nil {
		return err
	}
	o.ByDevice, o.Groupings = true, []string{"tag", "site", categoryGrouping}
	if by != "" {
		o.Groupings = []string{by, categoryGrouping}
	}
	return nil
}

// addCategories has questions request categories, by the preset's rules.
func addCategories(o *analyzer.Options) error {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	o.RuleSets = []profile.RuleGrouping{{Name: categoryGrouping, Rules: set}}
	return nil
}

// partsOf divides what a process holds among its devices.
func (r *reader) partsOf(s *report.Summary) (parts []devicePart, by string) {
	if by = r.by; by == "" {
		by = "site"
		if s.HasKeys("tag", report.Untagged) {
			by = "tag"
		}
	}
	for i := range s.Parts {
		part := &s.Parts[i]
		d := slices.IndexFunc(s.Devices, func(d report.Device) bool { return d.Index == part.Index })
		parts = append(parts, partOf(&s.Devices[d], part, by))
	}
	return parts, by
}

// RankText writes a rank, "" for a process that is part of no distributed run.
func RankText(rank *int) string {
	if rank == nil {
		return ""
	}
	return strconv.Itoa(*rank)
}

// part returns what a process has on a device as the management library names it. Without names, as some containers
// hide them, only what is alone on both sides is the same.
func (p *process) part(s *share) *devicePart {
	at := slices.IndexFunc(p.Owners.parts, func(part devicePart) bool { return part.UUID == s.UUID && s.UUID != "" })
	if at < 0 && len(p.Owners.parts) == 1 && len(p.Devices) == 1 {
		at = 0
	}
	if at < 0 {
		return nil
	}
	return &p.Owners.parts[at]
}
