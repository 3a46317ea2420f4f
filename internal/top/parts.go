package top

import (
	"fmt"
	"slices"
	"strconv"

	"memtrace/analyzer"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/rules/rulefile"
	"memtrace/trace/spool"
)

const (
	levelDriver    = "driver"
	levelFramework = "framework"
)

var topLevels = []string{levelDriver, levelFramework}

// maxParts bounds the devices of one process that are told apart: a trace may name any number of them.
const maxParts = 32

// topPart is what a recorded process has on one device.
type topPart struct {
	Index      int16 // as the process counts
	UUID       string
	By         string
	Level      string                  // whose blocks the rows divide
	Levels     map[string]report.Level // by levelDriver and levelFramework; without those that were not used
	Slack      int64                   // held by the framework's allocator, in no block
	Rows       []report.LedgerRow
	Categories []report.Category
}

// partOf takes a device's part from a summary that counts nothing else.
func partOf(s *report.Summary, d *report.Device, by string) topPart {
	p := topPart{Index: d.Index, UUID: d.UUID, By: by, Levels: make(map[string]report.Level)}
	for name, level := range map[string]report.Level{levelDriver: s.Driver, levelFramework: s.Framework} {
		if !level.Empty() {
			p.Levels[name] = level
		}
	}
	if l := s.Ledger(by); l != nil {
		p.Level, p.Rows, p.Slack = l.Level, l.Rows, l.SlackBytes
	}
	if c := s.CategoriesBy(categoryGrouping); c != nil {
		p.Categories = c.Rows
	}
	return p
}

// topFollower follows a trace with options of its own.
type topFollower struct {
	source *spool.Follower
	live   *analyzer.Live
}

func (r *topReader) follow(opts analyzer.Options) (*topFollower, error) {
	source, err := spool.Follow(r.found.tracePath, r.found.spoolPath)
	if err != nil {
		return nil, r.host.OpenError(r.found.name(), err)
	}
	live, err := analyzer.NewLive(source, opts)
	if err != nil {
		_ = source.Close() // read only
		return nil, err
	}
	return &topFollower{source, live}, nil
}

func (f *topFollower) update() (*report.Summary, error) {
	if err := f.source.Refresh(); err != nil {
		return nil, err
	}
	return f.live.Update()
}

func (f *topFollower) close() {
	f.live.Close()
	_ = f.source.Close() // read only
}

// askForParts adds to options what a topPart needs. Without a grouping, owners are tags where the program sets them and
// lines of the program elsewhere: which of all groupings says most may change while a program runs, and with it the
// names of all series.
func askForParts(o *analyzer.Options, by string) error {
	set, err := rulefile.Open(rulefile.Default)
	if err != nil {
		return err
	}
	o.RuleSets = []profile.RuleGrouping{{Name: categoryGrouping, Rules: set}}
	o.Groupings = []string{"tag", "site", categoryGrouping}
	if by != "" {
		o.Groupings = []string{by, categoryGrouping}
	}
	return nil
}

// addParts divides what a process holds among its devices. Where it has one, the summary has all of it; where it has
// several, each is followed on its own.
func (r *topReader) addParts(o *topOwners, s *report.Summary) error {
	by := r.by
	if by == "" {
		by = "site"
		if s.HasKeys("tag", report.Untagged) {
			by = "tag"
		}
	}
	o.By = by
	var used []*report.Device
	for i := range s.Devices {
		if d := &s.Devices[i]; !d.Driver.Empty() || !d.Framework.Empty() {
			used = append(used, d)
		}
	}
	if len(used) == 1 {
		o.parts = []topPart{partOf(s, used[0], by)}
		return nil
	}
	for _, d := range used[:min(len(used), maxParts)] {
		summary, err := r.onDevice(d.Index)
		if err != nil {
			return fmt.Errorf("%s: device %d: %w", r.found.name(), d.Index, err)
		}
		o.parts = append(o.parts, partOf(summary, d, by))
	}
	return nil
}

// onDevice follows the trace with nothing but one device in view.
func (r *topReader) onDevice(device int16) (*report.Summary, error) {
	f := r.apart[device]
	if f == nil {
		opts, err := r.options()
		if err != nil {
			return nil, err
		}
		opts.Devices = []int16{device}
		if f, err = r.follow(opts); err != nil {
			return nil, err
		}
		if r.apart == nil {
			r.apart = make(map[int16]*topFollower)
		}
		r.apart[device] = f
	}
	return f.update()
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
func (p *topProcess) part(s *topShare) *topPart {
	at := slices.IndexFunc(p.Owners.parts, func(part topPart) bool { return part.UUID == s.UUID && s.UUID != "" })
	if at < 0 && len(p.Owners.parts) == 1 && len(p.Devices) == 1 {
		at = 0
	}
	if at < 0 {
		return nil
	}
	return &p.Owners.parts[at]
}
