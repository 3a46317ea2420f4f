package analyzer

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer/advice"
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

// Summarize replays a trace and returns the answer to the question of the options. Damaged and cut traces are summarised
// as far as they go, see Summary.Health. Errors are those of Replay and of Profile.Report.
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

// summary turns what was collected into the value that reports are made of.
func (c *answer) summary(src trace.Source) (*report.Summary, error) {
	info := src.Info()
	c.resolver.StreamsTold, c.resolver.PoolsTold = info["adapter.torch.streams"] == "on", info["adapter.torch.pools"] == "on"
	defer c.finishOOMForNow()()
	if c.window != nil {
		if err := c.window.finish(c.collector, c.process(src).DurationNS); err != nil {
			return nil, err
		}
	}
	s := &report.Summary{
		Process:   c.process(src),
		Versions:  report.Versions(info),
		NullGPU:   info["nullgpu"] == "1",
		Driver:    c.window.level(meter.LevelOf(&c.details[heap.AccountDriver].Total), heap.AccountDriver, profile.AllSlots),
		Framework: c.window.level(meter.LevelOf(&c.details[heap.AccountFramework].Total), heap.AccountFramework, profile.AllSlots),
		Other:     map[string]report.Level{},
		Implicit:  map[string]report.ImplicitFrees{},
		Objects:   c.heap.Objects(),
		Launches:  c.launches,
		Lifetimes: map[string]report.LifetimeHist{},
		Steps:     c.steps,
		Epochs:    c.epochs,
		OOM:       c.ooms.OOM,
		Filter:    c.opts.words(),
	}
	if s.OOM.Events == nil {
		s.OOM.Events = []report.OOMEvent{}
	}
	oom.AddSidecars(&s.OOM, src)
	s.LostRecords, s.Health = c.health(src)
	s.Bounds = c.makeBounds(src, s.LostRecords)
	c.bounded = s.Bounds
	s.Devices = c.deviceList()
	for a := range heap.AccountCount {
		if l := c.window.level(meter.LevelOf(&c.totals[a]), a, profile.AllSlots); !l.Empty() && c.details[a] == nil {
			s.Other[a.String()] = l
		}
		if n := c.implicit[a]; n.Count > 0 {
			s.Implicit[a.String()] = n
		}
	}
	if s.Bounds == nil {
		c.requests.Of(&s.Framework, c.details[heap.AccountFramework], profile.AllSlots)
		for i := range s.Devices {
			c.requests.Of(&s.Devices[i].Framework, c.details[heap.AccountFramework], profile.DeviceSlot(s.Devices[i].Index))
		}
	}
	c.bound(s)
	c.addThinned(s, info)
	s.Groups = c.groupList(s)
	if c.window != nil {
		s.Window = c.window.value(c, s)
	}
	s.Heights = []report.Heights{}
	for _, a := range c.detailed(s) {
		s.Lifetimes[a.String()] = c.details[a].Life.Hist()
		if v := c.heights[a].Value(a.String(), s.EndNS()); v != nil {
			s.Heights = append(s.Heights, *v)
		}
	}
	selection := c.opts.selection()
	s.Marks, s.Unmatched = c.markList(), c.filter.Unmatched(&selection, c.device.Holdings.Used(), &c.resolver)
	held, err := c.addMoments(s)
	if err != nil {
		return nil, err
	}
	if s.Asked = len(c.Groupings) > 0; s.Asked {
		for _, by := range c.groupings {
			s.By = append(s.By, by.Name)
		}
	} else {
		s.By = []string{bestGrouping(s)}
	}
	s.DeviceLedger = c.deviceReport(info, s)
	s.Allocator = c.allocatorReport(info, s)
	c.addCategories(s, held, mainAccount(s))
	s.Health.Stacks = profile.StackHealth(c.resolver.Stacks, c.stackCounts(heap.AccountDriver), c.stackCounts(heap.AccountFramework))
	s.Health.SymbolProblems = append([]string{}, c.resolver.Stacks.Problems()...)
	if c.iterations != nil {
		s.Training = c.iterations.Value(c.opts.RuleSets[0].Rules, info, c.parameters.Values(), s.EndNS())
	}
	advice.ByCategory(s, advice.FollowedBy(c.resolver.Tables))
	if s.Training != nil {
		s.LoadedTwiceBytes = oom.LoadedTwice(c.details[heap.AccountFramework], &c.resolver)
	}
	s.Trend = trend.Of(c.held[mainAccount(s)], mainAccount(s).String(), s, &c.resolver)
	if c.timeline != nil {
		s.Timeline = c.timeline.value(c.collector, s)
	}
	s.History = c.historyOf(mainAccount(s))
	s.Notes = []string{}
	s.AddNotes(notes.Make(s, info)...)
	s.AddNotes(division.CategoryNotes(s.Categories)...)
	for _, text := range c.resolver.Stacks.Notes() {
		s.AddNotes(finding.New("symbol-problems", text, 0, "health.symbol_problems"))
	}
	return s, nil
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
