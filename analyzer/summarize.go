package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer/advice"
	"memtrace/analyzer/callstack"
	"memtrace/analyzer/division"
	"memtrace/analyzer/finding"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/meter"
	"memtrace/analyzer/notes"
	"memtrace/analyzer/oom"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/trend"
	"memtrace/trace"
)

// Summarize replays a trace and returns the answer to the question of the options. Damaged and cut traces are
// summarised as far as they go, see Summary.Health. Errors are those of Replay and of Profile.Report.
func Summarize(src trace.Source, opts Options) (*report.Summary, error) {
	p, err := Replay(src, opts)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Report(opts.Question)
}

// offsetter is a source that knows how many bytes it has read.
type offsetter interface{ Offset() int64 }

func replay(src trace.Source, c *collector, progress func(int64)) error {
	c.ooms.Info = src.Info
	for {
		err := c.next(src)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if progress != nil {
			progress(bytesRead(src))
		}
	}
}

// next replays the next events of a source, column by column where it has columns.
func (c *collector) next(src trace.Source) error {
	if columns, ok := src.(trace.ColumnSource); ok {
		b, err := columns.ReadColumns()
		c.enterPart(src.Info())
		if err == nil {
			c.batch(b)
		}
		return err
	}
	events, err := src.ReadBatch()
	c.enterPart(src.Info())
	c.rows(events)
	return err
}

func bytesRead(src trace.Source) int64 {
	if o, ok := src.(offsetter); ok {
		return o.Offset()
	}
	return src.Health().Bytes
}

// summary turns what was collected into the value that reports are made of: each part needs those before it.
func (c *answer) summary(src trace.Source) (*report.Summary, error) {
	info := src.Info()
	c.resolver.StreamsKnown = info["adapter.torch.streams"] == "on"
	c.resolver.PoolsKnown = info["adapter.torch.pools"] == "on"
	defer c.finishOOMForNow()()
	s := &report.Summary{Process: c.process(src), Versions: report.Versions(info), NullGPU: info["nullgpu"] == "1",
		Filter: c.opts.words()}
	report.AddPools(s.Versions, c.resolver.OwnPools())
	if c.window != nil {
		if err := c.window.finish(c.collector, s.Process.DurationNS); err != nil {
			return nil, err
		}
	}
	c.addCounts(s, src)
	c.addLevels(s, src)
	c.addThinned(s, info)
	c.addTables(s)
	held, err := c.addMoments(s)
	if err != nil {
		return nil, err
	}
	c.addGroupingNames(s)
	s.DeviceLedger = c.deviceReport(info, s)
	s.Allocator = c.allocatorReport(info, s)
	c.addCategories(s, held, mainAccount(s))
	c.addStackHealth(s)
	c.addTraining(s, info)
	s.KeptBy = report.KeptByOf(info, s.AllocatedAtOOM())
	c.addOverTime(s, info)
	c.addNotes(s, info)
	return s, nil
}

// addCounts adds what was counted besides bytes, and what is missing of the trace.
func (c *answer) addCounts(s *report.Summary, src trace.Source) {
	s.Objects, s.Launches, s.Steps, s.Epochs = c.heap.Objects(), c.launches, c.steps, c.epochs
	s.OOM = c.ooms.OOM
	if s.OOM.Events == nil {
		s.OOM.Events = []report.OOMEvent{}
	}
	oom.AddSidecars(&s.OOM, src)
	s.LostRecords, s.Health = c.health(src)
}

// addLevels adds the totals of all accounts and devices, and how far lost records leave them certain.
func (c *answer) addLevels(s *report.Summary, src trace.Source) {
	total := func(a heap.Account, m *meter.Meter) report.Level {
		return c.window.level(meter.LevelOf(m), a, profile.AllSlots)
	}
	s.Driver = total(heap.AccountDriver, &c.details[heap.AccountDriver].Total)
	s.Framework = total(heap.AccountFramework, &c.details[heap.AccountFramework].Total)
	s.Bounds = c.makeBounds(src, s.LostRecords)
	c.bounded = s.Bounds
	s.Devices = c.deviceList()
	s.Other, s.Implicit = map[string]report.Level{}, map[string]report.ImplicitFrees{}
	for a := range heap.AccountCount {
		if l := total(a, &c.totals[a]); !l.Empty() && c.details[a] == nil {
			s.Other[a.String()] = l
		}
		if n := c.implicit[a]; n.Count > 0 {
			s.Implicit[a.String()] = n
		}
	}
	if s.Bounds == nil {
		framework := c.details[heap.AccountFramework]
		c.requests.Of(&s.Framework, framework, profile.AllSlots)
		for i := range s.Devices {
			c.requests.Of(&s.Devices[i].Framework, framework, profile.DeviceSlot(s.Devices[i].Index))
		}
	}
	c.bound(s)
}

// addTables adds the levels divided: by groupings, by lifetimes, by the window's ends, by marks.
func (c *answer) addTables(s *report.Summary) {
	s.Groups = c.groupList(s)
	if c.window != nil {
		s.Window = c.window.value(c, s)
	}
	s.Lifetimes, s.Heights = map[string]report.LifetimeHist{}, []report.Heights{}
	for _, a := range c.detailed(s) {
		s.Lifetimes[a.String()] = c.details[a].Life.Hist()
		if v := c.heights[a].Value(a.String(), s.EndNS()); v != nil {
			s.Heights = append(s.Heights, *v)
		}
	}
	selection := c.opts.selection()
	s.Marks, s.Unmatched = c.markList(), c.filter.Unmatched(&selection, c.device.Holdings.Used(), &c.resolver)
}

// addGroupingNames says which groupings the report divides by.
func (c *answer) addGroupingNames(s *report.Summary) {
	if s.Asked = len(c.Groupings) > 0; !s.Asked {
		s.By = []string{bestGrouping(s)}
		return
	}
	for _, by := range c.groupings {
		s.By = append(s.By, by.Name)
	}
}

// addStackHealth says how whole call stacks are, and what kept their frames from being named.
func (c *answer) addStackHealth(s *report.Summary) {
	s.Health.Stacks = profile.StackHealth(c.resolver.Stacks,
		c.stackCounts(heap.AccountDriver), c.stackCounts(heap.AccountFramework))
	s.Health.SymbolProblems = append([]string{}, c.resolver.Stacks.Problems()...)
}

// addTraining adds the iterations, and the advice that goes by what memory was for.
func (c *answer) addTraining(s *report.Summary, info trace.Info) {
	if c.iterations != nil {
		s.Training = c.iterations.Value(c.opts.RuleSets[0].Rules, info, c.parameters.Values(), s.EndNS())
		s.LoadedTwiceBytes = oom.LoadedTwice(c.details[heap.AccountFramework], &c.resolver)
	}
	advice.Complete(s)
}

// addOverTime adds what was held over time. The history comes last: it names what nothing else needs names of.
func (c *answer) addOverTime(s *report.Summary, info trace.Info) {
	main := mainAccount(s)
	judge := trend.Judge{Held: c.held, Summary: s, Resolver: &c.resolver, Imported: info[notes.ImportKindKey] != "",
		Reserves: c.reserves}
	s.Trend, s.OtherTrends = judge.Judge(main)
	if c.timeline != nil {
		s.Timeline = c.timeline.value(c.collector, s)
	}
	s.History = c.historyOf(main)
}

// reserves reports whether a call stack takes driver memory for those who report what they cut out of it.
func (c *collector) reserves(stack uint64) bool {
	library := c.resolver.Libraries.Of(callstack.PairOf(stack).Native)
	return c.poolStacks[stack] || library != callstack.UnknownLibrary && c.device.Holdings.Reports(library)
}

// addNotes adds what limits the figures.
func (c *answer) addNotes(s *report.Summary, info trace.Info) {
	s.Notes = []string{}
	s.AddNotes(notes.Make(s, info)...)
	s.AddNotes(division.CategoryNotes(s.Categories)...)
	for _, text := range c.resolver.Stacks.Notes() {
		s.AddNotes(finding.New("symbol-problems", text, 0, "health.symbol_problems"))
	}
}

// detailed lists the levels that had events, the framework first.
func (c *collector) detailed(s *report.Summary) []heap.Account {
	var list []heap.Account
	if !s.Framework.Empty() {
		list = append(list, heap.AccountFramework)
	}
	if !s.Driver.Empty() {
		list = append(list, heap.AccountDriver)
	}
	return list
}
