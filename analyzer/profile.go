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

// Profile is what a replay of a trace leaves behind, of which any number of questions can be asked. An answer depends
// on the question and on what was replayed, but not on earlier questions, and asking changes nothing. A Profile must be
// closed, and is for one goroutine at a time.
type Profile struct {
	src       trace.Source
	opts      Options
	byRules   []*profile.Grouping
	collector *collector
}

// Replay reads a trace to its end. Damaged and cut traces are replayed as far as they go. Errors: those of NewProfile,
// and a failure to read.
func Replay(src trace.Source, opts Options) (*Profile, error) {
	p, err := NewProfile(src, opts)
	if err != nil {
		return nil, err
	}
	if err := p.Update(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// NewProfile returns a Profile of src, nothing of which is read yet: see Update. The errors are that of an unknown
// grouping, and those of reading Options.Ahead.
func NewProfile(src trace.Source, opts Options) (*Profile, error) {
	bounds := profile.SizeBounds(opts.RuleSets)
	if len(bounds) > profile.MaxSizeClasses {
		return nil, fmt.Errorf("the rules name %d different sizes; %d are allowed", len(bounds), profile.MaxSizeClasses)
	}
	p := &Profile{src: src}
	for _, g := range opts.RuleSets {
		p.byRules = append(p.byRules, profile.NewCategorizer(g.Rules, bounds).Grouping(g.Name))
	}
	if _, err := p.about(&opts.Question); err != nil {
		return nil, err
	}
	followed, err := opts.overTime(p.byRules)
	if err != nil {
		return nil, err
	}
	window, err := opts.window()
	if err != nil {
		return nil, err
	}
	c := newCollector(src.Tables(), profile.Counting(p.byRules), profile.NewFilter(opts.selection()), opts.At)
	c.window, c.bounds, c.timeline = window, bounds, followed
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
		c.want.Seq = lastAlloc(known)
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
	p.opts, p.collector = opts, c
	return p, nil
}

// Update replays what the source has beyond what was read: nothing, unless it grows as that of a process that still
// runs does. After an error, the next Update goes on where this one stopped.
func (p *Profile) Update() error { return replay(p.src, p.collector, p.opts.Progress) }

// Report answers a question. With Question.At "exit", it says how things stand now. Errors: an unknown grouping, a
// moment that never came or whose state was not kept.
func (p *Profile) Report(q Question) (*report.Summary, error) {
	a, err := p.about(&q)
	if err != nil {
		return nil, err
	}
	defer p.collector.resolver.Stacks.BeginQuestion()()
	return a.summary(p.src)
}

// Close gives back the files that names were looked for in. Update and questions may follow.
func (p *Profile) Close() { p.collector.resolver.Stacks.Close() }

// answer is a collector that is asked a question.
type answer struct {
	*collector
	*Question
	opts       *Options // of the replay
	groupings  []*profile.Grouping
	crossed    []*profile.Grouping // the two of a crossed table; nil without one
	rowIndexes map[*profile.Grouping]*profile.RowIndex
}

// about checks a question, whose groupings may be made of rules.
func (p *Profile) about(q *Question) (*answer, error) {
	wanted := q.Groupings
	if len(wanted) == 0 {
		wanted = defaultGroupings
		if q.Sites {
			wanted = append(slices.Clone(wanted), "site", "inner", "operator", "module")
		}
	}
	a := &answer{collector: p.collector, Question: q, opts: &p.opts,
		rowIndexes: make(map[*profile.Grouping]*profile.RowIndex)}
	var err error
	if a.groupings, err = profile.PickGroupings(wanted, p.byRules); err != nil {
		return nil, err
	}
	if a.crossed, err = division.PickCross(q.Cross, p.byRules); err != nil {
		return nil, err
	}
	if p.collector != nil && !q.At.FoundAfterwards() && q.At != p.opts.At {
		return nil, fmt.Errorf("what stood at %s was not kept: name it in the options of the replay", q.At)
	}
	return a, nil
}

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
