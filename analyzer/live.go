package analyzer

import (
	"errors"
	"fmt"
	"slices"

	"memtrace/analyzer/division"
	"memtrace/analyzer/heap"
	"memtrace/analyzer/notes"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
	"memtrace/analyzer/training"
	"memtrace/trace"
)

// Live summarises a source that grows: a process that still runs. It replays each event once, however often it is
// asked.
type Live struct {
	src       trace.Source
	opts      Options
	collector *collector
}

// NewLive returns a Live over src, nothing of which is read yet. With Options.At "exit", the ledgers say how things
// stand now. The errors are that of an unknown grouping, and those of reading Options.Ahead.
func NewLive(src trace.Source, opts Options) (*Live, error) {
	wanted := opts.Groupings
	if len(wanted) == 0 {
		wanted = defaultGroupings
		if opts.Sites {
			wanted = append(slices.Clone(wanted), "site", "inner", "operator", "module")
		}
	}
	bounds := profile.SizeBounds(opts.RuleSets)
	if len(bounds) > profile.MaxSizeClasses {
		return nil, fmt.Errorf("the rules name %d different sizes; %d are allowed", len(bounds), profile.MaxSizeClasses)
	}
	var byRules []*profile.Grouping
	for _, g := range opts.RuleSets {
		byRules = append(byRules, profile.NewCategorizer(g.Rules, bounds).Grouping(g.Name))
	}
	picked, err := profile.PickGroupings(wanted, byRules)
	if err != nil {
		return nil, err
	}
	crossed, err := division.PickCross(opts.Cross, byRules)
	if err != nil {
		return nil, err
	}
	followed, err := opts.overTime(byRules)
	if err != nil {
		return nil, err
	}
	window, err := opts.window()
	if err != nil {
		return nil, err
	}
	c := newCollector(src.Tables(), picked, profile.NewFilter(profile.Selection{Devices: opts.Devices, Tag: opts.Tag, Library: opts.Library, Focus: opts.Focus, Ignore: opts.Ignore}), opts.At)
	c.window, c.bounds, c.crossed, c.timeline = window, bounds, crossed, followed
	c.ooms.Places = opts.Sites
	c.keepHistory(&opts)
	c.resolver.Stacks.Info, c.resolver.Stacks.Options, c.resolver.Stacks.Own = src.Info, opts.Symbols, opts.Own
	if opts.Training && (opts.Ahead == nil || len(opts.RuleSets) == 0) {
		return nil, errors.New("training needs rules, and the trace once more to be read ahead")
	}
	if opts.Ahead != nil && opts.NeedsAhead() {
		known, err := training.ReadAhead(c.findRefusals(opts.Ahead))
		if err != nil {
			return nil, err
		}
		c.useDictionary(opts.Ahead)
		c.lookahead = known.Blocks
		c.want.behind(known)
		c.window.behind(known)
		c.modules.First = known.Modules.First             // so that names hold before they are said
		if opts.Ahead.Info()[notes.ImportKindKey] != "" { // without names, what memory is for cannot be told
			opts.Training = false
		}
		if opts.Training {
			c.resolver.Lifetimes = true
			c.followIterations(known, opts.RuleSets[0])
		}
	}
	return &Live{src: src, opts: opts, collector: c}, nil
}

// Update replays what the source has now and returns the summary of everything up to here. The errors are those of
// Summarize; after one, the next Update goes on where this one stopped.
func (l *Live) Update() (*report.Summary, error) {
	if err := replay(l.src, l.collector, l.opts.Progress); err != nil {
		return nil, err
	}
	return l.collector.summary(l.src, &l.opts)
}

// Close gives back the files that names were looked for in. Update may be called again.
func (l *Live) Close() { l.collector.resolver.Stacks.Close() }

// useDictionary takes names from a source that was read to its end.
func (c *collector) useDictionary(src trace.Source) {
	c.resolver.Tables, c.resolver.Stacks.Tables, c.resolver.Stacks.Info = src.Tables(), src.Tables(), src.Info
}

// followIterations divides the run into iterations, by what a first reading found out.
func (c *collector) followIterations(known *training.Lookahead, g profile.RuleGrouping) {
	var t *training.Tracker
	t = training.NewTracker(known, g, c.bounds, &c.resolver, func(block uint32) *profile.Cell {
		return &c.details[t.Account].Cells.List[c.cellOf[block]]
	})
	if t.Account == heap.AccountFramework {
		t.Requested = func() *report.Requested { return c.requests.Live(c.details[heap.AccountFramework]) }
	}
	c.iterations = t
}
