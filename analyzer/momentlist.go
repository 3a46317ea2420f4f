package analyzer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"memtrace/analyzer/division"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/moment"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

// mainAccount is the account that Summary.MainLevel names.
func mainAccount(s *report.Summary) heap.Account { return accountFirst(&s.Framework) }

// accountFirst is the account that reports put first where this is what they say of the framework's.
func accountFirst(framework *report.Level) heap.Account {
	if !framework.Empty() {
		return heap.AccountFramework
	}
	return heap.AccountDriver
}

// addMoments makes the ledgers and the list of places, and the moment that was asked for. It returns the moment of the
// ledgers.
func (c *answer) addMoments(s *report.Summary) (*moment.State, error) {
	want := c.At
	main := mainAccount(s)
	m, label := c.peakOf(main), "peak"
	if !want.IsZero() {
		if m, label = c.wanted(s, main, want), want.String(); s.Window != nil &&
			(m == nil || m.Time < s.Window.FromNS || m.Time > s.Window.ToNS) {
			return nil, fmt.Errorf("--at %s is not within the window, %s", want,
				moment.WindowWords(c.opts.From, c.opts.To))
		}
		if m == nil {
			return nil, c.noMoment(want, s)
		}
		s.At, c.watched = c.momentValue(m, label), m.Watched
	}
	s.Ledgers = []report.Ledger{}
	for _, by := range c.groupings {
		l := c.ledger(m, main, by, label)
		if c.Sites {
			division.AddRowSites(&l, m.Held[main], c.rowIndex(by), &c.resolver)
		}
		s.Ledgers = append(s.Ledgers, l)
	}
	if c.ByDevice {
		s.Parts = c.parts(s, m, label)
	}
	if c.crossed != nil {
		s.Cross = division.Cross(&c.resolver, c.crossed, m.Held[main])
		s.Cross.Level, s.Cross.Moment, s.Cross.TimeNS = main.String(), label, m.Time
	}
	if c.Sites {
		s.Sites = division.Sites(&c.resolver, m.Held[main], c.stackCounts(main), c.FullStacks)
		s.Sites.Level, s.Sites.Moment, s.Sites.TimeNS = main.String(), label, m.Time
		s.Division = c.divide(main.String(), m.Held[main])
	}
	return m, nil
}

// divide divides the place that holds most of a level's blocks.
func (c *collector) divide(level string, list []profile.Held) *report.Division {
	return division.Of(&c.resolver, level, list)
}

// wanted returns the state at the moment that was asked for, nil if it never came; main is the account whose peak is
// meant.
func (c *collector) wanted(s *report.Summary, main heap.Account, want moment.At) *moment.State {
	switch want.Kind {
	case moment.Peak, moment.None:
		return c.peakOf(main)
	case moment.Exit:
		return c.now(s.EndNS())
	case moment.Time: // between the last event and the end of the run nothing changes
		if c.moment == nil && want.Time <= s.Process.DurationNS {
			return c.now(want.Time)
		}
	}
	return c.moment
}

func (c *collector) noMoment(want moment.At, s *report.Summary) error {
	if want.Kind == moment.Step && s.Steps.Count == 0 {
		return fmt.Errorf("the trace has no step %d: it has no steps at all; memtrace.step() announces them", want.Step)
	}
	if want.Kind == moment.Step {
		return fmt.Errorf("the trace has no step %d; it has %d steps, from %d to %d", want.Step, s.Steps.Count,
			s.Steps.FirstNumber, s.Steps.LastNumber)
	}
	switch want.Kind {
	case moment.OOM:
		return c.noOOM(want)
	case moment.Time:
		return fmt.Errorf("--at %s is after the end of the run, which took %v; --at exit shows its end", want,
			time.Duration(s.Process.DurationNS).Round(time.Microsecond))
	case moment.Teardown:
		return errors.New("the program made no allocation, so there is no moment before its teardown")
	}
	if len(s.Marks) == 0 {
		return fmt.Errorf("the trace has no mark %q: it has no marks at all", want.Name)
	}
	const shown = 10
	var known []string
	for _, m := range s.Marks[:min(shown, len(s.Marks))] {
		known = append(known, strconv.Quote(m.Name))
	}
	if more := len(s.Marks) - shown; more > 0 {
		known = append(known, fmt.Sprintf("and %d more", more))
	}
	return fmt.Errorf("the trace has no mark %q; it has %s", want.Name, strings.Join(known, ", "))
}

func (c *answer) momentValue(m *moment.State, label string) *report.Moment {
	v := &report.Moment{What: label, TimeNS: m.Time, Driver: c.momentLevel(m, heap.AccountDriver, profile.AllSlots),
		Framework: c.momentLevel(m, heap.AccountFramework, profile.AllSlots),
		Devices:   []report.MomentDevice{}, Groups: []report.MomentGroup{}, BeforeLoss: c.bounded != nil &&
			c.exactMoment(m)}
	for _, d := range c.deviceList() {
		slot := profile.DeviceSlot(d.Index)
		v.Devices = append(v.Devices,
			report.MomentDevice{Index: d.Index, Driver: c.momentLevel(m, heap.AccountDriver, slot),
				Framework:     c.momentLevel(m, heap.AccountFramework, slot),
				ReservedBytes: m.ReservedOn(slot, &c.device.Holdings)})
	}
	for _, by := range c.groupings {
		for _, a := range []heap.Account{heap.AccountFramework, heap.AccountDriver} {
			if m.Held[a] != nil && c.details[a].Total.Allocs > 0 {
				v.Groups = append(v.Groups, report.MomentGroup{By: by.Name, Level: a.String(),
					Rows: c.momentRows(m, a, by)})
			}
		}
	}
	return v
}

// momentLevel returns what was live of an account on a device, or on all.
func (c *collector) momentLevel(m *moment.State, a heap.Account, slot int) report.MomentLevel {
	l := report.MomentLevel{LiveBytes: m.Live(a)}
	if slot != profile.AllSlots {
		l.LiveBytes = meter.ValueAt(m.Devices[a], slot)
	}
	if c.bounded == nil {
		if a == heap.AccountFramework && slot+1 < len(m.Requested) {
			l.Requested = m.Requested[slot+1] // all devices first
		}
		return l
	}
	l.LiveBytesLower = report.Plus(nil, 0)
	if c.exactMoment(m) {
		*l.LiveBytesLower = l.LiveBytes
		return l
	}
	for i := range m.Held[a] {
		if h := &m.Held[a][i]; slot == profile.AllSlots || profile.DeviceSlot(h.Device) == slot {
			*l.LiveBytesLower += c.certainHeld(h)
		}
	}
	return l
}

// addCategories makes the lists of all groupings that are made of rules. The ledgers must have been made.
func (c *answer) addCategories(s *report.Summary, m *moment.State, main heap.Account) {
	s.Categories = c.categories(s.Ledgers, m, main)
	for i := range s.Categories {
		v := &s.Categories[i]
		if whole := s.Ledger(v.By).WholeBytes; c.Expected > 0 && !c.filter.Narrowed() {
			v.Untrackable = &report.Untrackable{From: report.UntrackableExpected, ReportedBytes: c.Expected,
				TrackedBytes: whole, Bytes: int64(c.Expected - whole)}
		} else {
			v.Untrackable = division.UntrackableOnDevices(s, v.By)
		}
	}
}

// categories divides the blocks of a moment by the groupings that are made of rules. The ledgers are one for each
// grouping.
func (c *answer) categories(ledgers []report.Ledger, m *moment.State, main heap.Account) (list []report.Categories) {
	for g, by := range c.groupings {
		k, l := by.Categories, &ledgers[g]
		if k == nil {
			continue
		}
		v := report.Categories{By: by.Name, Rules: k.Set.Name, Mode: k.Set.Mode.String(), Level: l.Level,
			Moment: l.Moment, TimeNS: l.TimeNS}
		v.Rows = division.CategoryRows(&c.resolver, k, m.Held[main], c.Sites, c.Entries, c.requestedOf(main))
		for _, h := range m.Held[main] {
			v.TrackedBytes += h.Bytes
		}
		for _, row := range v.Rows {
			v.SumBytes += row.Bytes
		}
		v.ExcessBytes = v.SumBytes - v.TrackedBytes
		list = append(list, v)
	}
	return list
}

// maxParts bounds the devices that are told apart: a trace may name any number of them.
const maxParts = 32

// parts divides a moment among the devices that were used, each by the level that a report of it alone would put first.
func (c *answer) parts(s *report.Summary, m *moment.State, label string) []report.DevicePart {
	list := []report.DevicePart{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Framework.Empty() && d.Driver.Empty() {
			continue
		}
		if len(list) == maxParts {
			break
		}
		main, on := accountFirst(&d.Framework), m.On(profile.DeviceSlot(d.Index))
		part := report.DevicePart{Index: d.Index}
		for _, by := range c.groupings {
			part.Ledgers = append(part.Ledgers, c.ledger(on, main, by, label))
		}
		part.Categories = c.categories(part.Ledgers, on, main)
		list = append(list, part)
	}
	return list
}
