package analyzer

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/cause"
	"memtrace/internal/heap"
	"memtrace/internal/moment"
	"memtrace/internal/profile"
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
func (q *query) addMoments(s *report.Summary) (*moment.State, error) {
	want := q.At
	main := mainAccount(s)
	m, label := q.replayer.peakOf(main), "peak"
	if !want.IsZero() {
		if m, label = q.wanted(s, main, want), want.String(); s.Window != nil &&
			(m == nil || m.Time < s.Window.FromNS || m.Time > s.Window.ToNS) {
			return nil, fmt.Errorf("--at %s is not within the window, %s", want,
				moment.WindowWords(q.opts.From, q.opts.To))
		}
		if m == nil {
			return nil, noMoment(want, s, &q.replayer.ooms)
		}
		if s.At = q.momentValue(m, label); q.replayer.watcher != nil {
			q.replayer.watcher.chosen = m.Watched
		}
	}
	s.Ledgers = []report.Ledger{}
	for _, by := range q.groupings {
		l := q.ledger(m, main, by, label)
		if q.Sites {
			cause.AddRowSites(&l, m.Held[main], q.rowIndex(by), q.resolver)
		}
		s.Ledgers = append(s.Ledgers, l)
	}
	if q.ByDevice {
		s.Parts = q.parts(s, m, label)
	}
	if q.crossed != nil {
		s.Cross = cause.CrossOf(q.resolver, q.crossed, m.Held[main])
		s.Cross.Level, s.Cross.Moment, s.Cross.TimeNS = main.String(), label, m.Time
	}
	if q.Sites {
		s.Sites = cause.SitesOf(q.resolver, m.Held[main], q.stackCounts(main), q.FullStacks)
		s.Sites.Level, s.Sites.Moment, s.Sites.TimeNS = main.String(), label, m.Time
		s.Division = cause.DivisionOf(q.resolver, main.String(), m.Held[main])
		if s.At == nil {
			s.Function = cause.FunctionOf(q.resolver, m.Held[main])
		}
	}
	return m, nil
}

// wanted returns the state at the moment that was asked for, nil if it never came; main is the account whose peak is
// meant.
func (q *query) wanted(s *report.Summary, main heap.Account, want moment.At) *moment.State {
	switch want.Kind {
	case moment.Peak, moment.None:
		return q.replayer.peakOf(main)
	case moment.Exit:
		return q.replayer.now(s.EndNS())
	case moment.Time: // between the last event and the end of the run nothing changes
		if q.replayer.moments.kept == nil && want.Time <= s.Process.DurationNS {
			return q.replayer.now(want.Time)
		}
	}
	return q.replayer.moments.kept
}

// noMoment explains why the trace has no such moment.
func noMoment(want moment.At, s *report.Summary, ooms *oomFigure) error {
	if want.Kind == moment.Step && s.Steps.Count == 0 {
		return fmt.Errorf("the trace has no step %d: it has no steps at all, which memtrace.step() announces; iteration:N, the end of iteration N, needs none",
			want.Step)
	}
	if want.Kind == moment.Step {
		return fmt.Errorf("the trace has no step %d; it has %d steps, from %d to %d", want.Step, s.Steps.Count,
			s.Steps.FirstNumber, s.Steps.LastNumber)
	}
	switch want.Kind {
	case moment.OOM:
		return noOOM(want, ooms.Number())
	case moment.Time:
		return fmt.Errorf("--at %s is after the end of the run, which took %v; --at exit shows its end", want,
			time.Duration(s.Process.DurationNS).Round(time.Microsecond))
	case moment.Teardown:
		if s.Process.Ended == report.EndedRunning { // what was looked ahead at has grown since
			return errors.New("the program still runs, so its last allocation is not known; use --at exit")
		}
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

// noOOM explains why there is no such moment of the refusals.
func noOOM(want moment.At, count int) error {
	if count == 0 {
		return fmt.Errorf("the trace has no moment %s: memory never ran out", want)
	}
	if want.OOM == 0 {
		return fmt.Errorf(
			"the trace has no moment %s: memory ran out %d times, but the program got it in the end; choose oom:1 to oom:%d", want, count, count)
	}
	return fmt.Errorf("the trace has no moment %s: memory ran out %d times, so oom:%d is the last", want, count, count)
}

func (q *query) momentValue(m *moment.State, label string) *report.Moment {
	v := &report.Moment{What: label, TimeNS: m.Time, Driver: q.momentLevel(m, heap.AccountDriver, profile.AllSlots),
		Framework: q.momentLevel(m, heap.AccountFramework, profile.AllSlots),
		Devices:   []report.MomentDevice{}, Groups: []report.MomentGroup{}, BeforeLoss: q.certain.bounds != nil &&
			q.certain.exactMoment(m)}
	for _, d := range q.deviceList() {
		slot := profile.DeviceSlot(d.Index)
		v.Devices = append(v.Devices,
			report.MomentDevice{Index: d.Index, Driver: q.momentLevel(m, heap.AccountDriver, slot),
				Framework:     q.momentLevel(m, heap.AccountFramework, slot),
				ReservedBytes: m.ReservedOn(slot, &q.replayer.device.Holdings)})
	}
	for _, by := range q.groupings {
		for _, a := range []heap.Account{heap.AccountFramework, heap.AccountDriver} {
			if m.Held[a] != nil && q.accounts.details[a].Total.Allocs > 0 {
				v.Groups = append(v.Groups, report.MomentGroup{By: by.Name, Level: a.String(),
					Rows: q.momentRows(m, a, by)})
			}
		}
	}
	return v
}

// momentLevel returns what was live of an account on a device, or on all.
func (q *query) momentLevel(m *moment.State, a heap.Account, slot int) report.MomentLevel {
	l := report.MomentLevel{LiveBytes: m.Live(a)}
	if slot != profile.AllSlots {
		l.LiveBytes = heap.ValueAt(m.Devices[a], slot)
	}
	if q.certain.bounds == nil {
		if a == heap.AccountFramework && slot+1 < len(m.Requested) {
			l.Requested = m.Requested[slot+1] // all devices first
		}
		return l
	}
	l.LiveBytesLower = report.Plus(nil, 0)
	if q.certain.exactMoment(m) {
		*l.LiveBytesLower = l.LiveBytes
		return l
	}
	for i := range m.Held[a] {
		if h := &m.Held[a][i]; slot == profile.AllSlots || profile.DeviceSlot(h.Device) == slot {
			*l.LiveBytesLower += q.certain.lowerHeld(h)
		}
	}
	return l
}

// addCategories makes the lists of all groupings that are made of rules. The ledgers must have been made.
func (q *query) addCategories(s *report.Summary, m *moment.State, main heap.Account) {
	s.Categories = q.categories(s.Ledgers, m, main)
	for i := range s.Categories {
		v := &s.Categories[i]
		if whole := s.Ledger(v.By).WholeBytes; q.Expected > 0 && !q.accounts.filter.Narrowed() {
			v.Untrackable = &report.Untrackable{From: report.UntrackableExpected, ReportedBytes: q.Expected,
				TrackedBytes: whole, Bytes: int64(q.Expected - whole)}
		} else {
			v.Untrackable = cause.UntrackableOnDevices(s, v.By)
		}
	}
}

// categories divides the blocks of a moment by the groupings that are made of rules. The ledgers are one for each
// grouping.
func (q *query) categories(ledgers []report.Ledger, m *moment.State, main heap.Account) (list []report.Categories) {
	for g, by := range q.groupings {
		k, l := by.Categories, &ledgers[g]
		if k == nil {
			continue
		}
		v := report.Categories{By: by.Name, Rules: k.Set.Name, Mode: k.Set.Mode.String(), Level: l.Level,
			Moment: l.Moment, TimeNS: l.TimeNS}
		v.Rows = cause.CategoryRows(q.resolver, k, m.Held[main], q.Sites, q.Entries, q.requestedOf(main))
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
func (q *query) parts(s *report.Summary, m *moment.State, label string) []report.DevicePart {
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
		for _, by := range q.groupings {
			part.Ledgers = append(part.Ledgers, q.ledger(on, main, by, label))
		}
		part.Categories = q.categories(part.Ledgers, on, main)
		list = append(list, part)
	}
	return list
}
