package analyzer

import (
	"errors"
	"fmt"
	"slices"

	"memtrace/analyzer/heap"
	"memtrace/analyzer/report"
	"memtrace/trace"
)

// Live summarises a source that grows: a process that still runs. It replays each event once, however often it is asked.
type Live struct {
	src       trace.Source
	opts      Options
	collector *collector
}

// NewLive returns a Live over src, nothing of which is read yet. With Options.At "exit", the ledgers say how things stand now. The errors are that of an unknown
// grouping, and those of reading Options.Ahead.
func NewLive(src trace.Source, opts Options) (*Live, error) {
	wanted := opts.Groupings
	if len(wanted) == 0 {
		wanted = defaultGroupings
		if opts.Sites {
			wanted = append(slices.Clone(wanted), "site", "inner", "operator", "module")
		}
	}
	bounds := sizeBounds(opts.RuleSets)
	if len(bounds) > maxSizeClasses {
		return nil, fmt.Errorf("the rules name %d different sizes; %d are allowed", len(bounds), maxSizeClasses)
	}
	var byRules []*grouping
	for _, g := range opts.RuleSets {
		byRules = append(byRules, newCategorizer(g.Rules, bounds).grouping(g.Name))
	}
	picked, err := pickGroupings(wanted, byRules)
	if err != nil {
		return nil, err
	}
	crossed, err := pickCross(opts.Cross, byRules)
	if err != nil {
		return nil, err
	}
	if err := checkSince(opts.Since); err != nil {
		return nil, err
	}
	c := newCollector(src.Tables(), picked, newFilter(Selection{Devices: opts.Devices, Tag: opts.Tag, Library: opts.Library, Focus: opts.Focus, Ignore: opts.Ignore}), opts.At)
	c.since, c.bounds, c.crossed = opts.Since, bounds, crossed
	c.ooms.places = opts.Sites
	if opts.HistoryBlocks > 0 {
		c.past[heap.AccountFramework], c.past[heap.AccountDriver] = newHistory(opts.HistoryBlocks), newHistory(opts.HistoryBlocks)
	}
	c.resolver.stacks.Info, c.resolver.stacks.Options, c.resolver.stacks.Own = src.Info, opts.Symbols, opts.Own
	if opts.Training && (opts.Ahead == nil || len(opts.RuleSets) == 0) {
		return nil, errors.New("training needs rules, and the trace once more to be read ahead")
	}
	if opts.At.NeedsAhead() && opts.Ahead == nil {
		return nil, fmt.Errorf("the moment %s needs the trace once more to be read ahead", opts.At)
	}
	if opts.Ahead != nil && (opts.Focus != nil || opts.Ignore != nil || opts.Training || opts.At.NeedsAhead()) {
		known, err := readAhead(opts.Ahead)
		if err != nil {
			return nil, err
		}
		c.useDictionary(opts.Ahead)
		c.foretold = known.blocks
		c.want.behind(known)
		c.modules.first = known.modules.first       // so that names hold before they are said
		if opts.Ahead.Info()[importKindKey] != "" { // without names, what memory is for cannot be told
			opts.Training = false
		}
		if opts.Training {
			c.resolver.lifetimes = true
			c.followIterations(known, opts.RuleSets[0])
		}
	}
	return &Live{src: src, opts: opts, collector: c}, nil
}

// Update replays what the source has now and returns the summary of everything up to here. The errors are those of Summarize; after one, the next Update goes on
// where this one stopped.
func (l *Live) Update() (*report.Summary, error) {
	if err := replay(l.src, l.collector, l.opts.Progress); err != nil {
		return nil, err
	}
	return l.collector.summary(l.src, &l.opts)
}

// Close gives back the files that names were looked for in. Update may be called again.
func (l *Live) Close() { l.collector.resolver.stacks.Close() }

// useDictionary takes names from a source that was read to its end.
func (c *collector) useDictionary(src trace.Source) {
	c.resolver.tables, c.resolver.stacks.Tables, c.resolver.stacks.Info = src.Tables(), src.Tables(), src.Info
}

// followIterations divides the run into iterations, by what a first reading found out.
func (c *collector) followIterations(known *preview, g RuleGrouping) {
	var t *iterationTracker
	t = newIterationTracker(known, g, c.bounds, &c.resolver, func(block uint32) *cell {
		return &c.details[t.account].cells.list[c.cellOf[block]]
	})
	c.iterations = t
}
