package analyzer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/cause"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// Profile is what a replay of a trace leaves behind, of which any number of questions can be asked. An answer depends
// on the question and on what was replayed, but not on earlier questions, and asking changes nothing. A Profile must be
// closed, and is for one goroutine at a time.
type Profile struct {
	src      trace.Source
	opts     Options
	byRules  []*profile.Grouping
	replayer *replayer
	known    *training.Lookahead // what reading ahead found out; nil where that was not needed
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
	p, err := newProfile(src, opts)
	if err != nil {
		return nil, err
	}
	return p, readAhead(p)
}

// newProfile is NewProfile without the reading ahead.
func newProfile(src trace.Source, opts Options) (*Profile, error) {
	bounds := profile.SizeBounds(opts.RuleSets)
	if len(bounds) > profile.MaxSizeClasses {
		return nil, fmt.Errorf("the rules name %d different sizes; %d are allowed", len(bounds), profile.MaxSizeClasses)
	}
	p := &Profile{src: src}
	for _, g := range opts.RuleSets {
		p.byRules = append(p.byRules, profile.NewCategorizer(g.Rules, bounds).Grouping(g.Name))
	}
	if _, err := p.query(&opts.Question); err != nil {
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
	filter, err := opts.filter(p.byRules)
	if err != nil {
		return nil, err
	}
	r := newReplayer(src.Tables(), profile.Counting(p.byRules), filter, &opts, followed)
	r.window, r.accounts.bounds = window, bounds
	stacks := r.accounts.resolver.Stacks
	stacks.Info, stacks.Options, stacks.Own = src.Info, opts.Symbols, opts.Own
	if opts.Training && (opts.Ahead == nil || len(opts.RuleSets) == 0) {
		return nil, errors.New("training needs rules, and the trace once more to be read ahead")
	}
	p.opts, p.replayer = opts, r
	r.begin = opts.fromKeyframe(src, window)
	return p, nil
}

// readAhead reads Options.Ahead where something depends on what comes later in the trace: that of the first of some
// profiles of one trace, which need it alike, once for all of them.
func readAhead(list ...*Profile) error {
	first := list[0]
	if first.opts.Ahead == nil || !first.opts.NeedsAhead() {
		return nil
	}
	known, err := lookAhead(list)
	if err != nil {
		return err
	}
	for _, p := range list {
		p.lookedAhead(known, first.opts.Ahead)
	}
	return nil
}

func lookAhead(list []*Profile) (*training.Lookahead, error) {
	ahead := list[0].opts.Ahead
	if r := list[0].replayer; r.begin != nil {
		return r.begin.readAhead(ahead, r.window)
	}
	for _, p := range list {
		found, free := p.replayer.window.findRefusals(ahead, p.replayer.accounts.filter)
		defer free()
		ahead = found
	}
	return training.ReadAhead(ahead)
}

// lookedAhead takes in what a reading of ahead found out.
func (p *Profile) lookedAhead(known *training.Lookahead, ahead trace.Source) {
	opts, r := &p.opts, p.replayer
	p.known = known
	a := &r.accounts
	a.resolver.Tables, a.resolver.Stacks.Tables, a.resolver.Stacks.Info = ahead.Tables(), ahead.Tables(), ahead.Info
	a.lookahead, r.elements, r.idle.seq = known.Blocks, maps.Clone(known.Elements), known.Blocks.PeakSeq()
	r.moments.want.Seq = lastAlloc(known)
	r.window.behind(known)
	a.modules.First = known.Modules.First        // so that names hold before they are said
	if ahead.Info()[cause.ImportKindKey] != "" { // without names, what memory is for is not known
		opts.Training = false
	}
	if opts.Training {
		a.resolver.Lifetimes = true
		a.followIterations(known, opts.RuleSets[0])
	}
}

// Update replays what the source has beyond what was read: nothing, unless it grows as that of a process that still
// runs does. After an error, the next Update goes on where this one stopped.
func (p *Profile) Update() error { return p.replayer.replay(p.src, p.opts.Progress) }

// Report answers a question. With Question.At "exit", it says how things stand now. Errors: an unknown grouping, a
// moment that never came or whose state was not kept.
func (p *Profile) Report(q Question) (*report.Summary, error) {
	a, err := p.query(&q)
	if err != nil {
		return nil, err
	}
	defer a.resolver.Stacks.BeginQuestion()()
	return a.summary()
}

// Close closes the files that names were looked for in and releases the memory. The profile must not be used any more.
func (p *Profile) Close() {
	p.replayer.accounts.resolver.Stacks.Close()
	p.replayer.accounts.room.Free()
}

// query is a question that is asked of a replay, and what its answer is made of.
type query struct {
	*Question
	src        trace.Source
	opts       *Options // of the replay
	replayer   *replayer
	accounts   *accounts
	resolver   *profile.Resolver
	certain    certainty
	groupings  []*profile.Grouping
	crossed    []*profile.Grouping // the two of a crossed table; nil without one
	rowIndexes map[*profile.Grouping]*profile.RowIndex
}

// query checks a question, whose groupings may be made of rules.
func (p *Profile) query(question *Question) (*query, error) {
	wanted := question.Groupings
	if len(wanted) == 0 {
		wanted = defaultGroupings
		if question.Sites {
			wanted = append(slices.Clone(wanted), "site", "inner", "operator", "module")
		}
	}
	q := &query{Question: question, src: p.src, opts: &p.opts, replayer: p.replayer,
		rowIndexes: make(map[*profile.Grouping]*profile.RowIndex)}
	var err error
	if q.groupings, err = profile.PickGroupings(wanted, p.byRules); err != nil {
		return nil, err
	}
	if q.crossed, err = cause.PickCross(question.Cross, p.byRules); err != nil {
		return nil, err
	}
	if p.replayer == nil {
		return q, nil
	}
	q.accounts, q.resolver = &p.replayer.accounts, &p.replayer.accounts.resolver
	q.certain.losses = &p.replayer.losses
	if !question.At.FoundAfterwards() && question.At != p.opts.At {
		return nil, fmt.Errorf("what stood at %s was not kept: name it in the options of the replay", question.At)
	}
	return q, nil
}

// followIterations divides the run into iterations, by what a first reading found out.
func (a *accounts) followIterations(known *training.Lookahead, g profile.RuleGrouping) {
	var t *training.Tracker
	t = training.NewTracker(known, g, a.bounds, &a.resolver, func(block uint32) *profile.Cell {
		return &a.details[t.Account].Cells.List[a.live.At(block).Cell]
	}, a.links, a.room)
	if t.Account == heap.AccountFramework {
		t.Requested = func() *report.Requested { return a.requests.Live(a.details[heap.AccountFramework]) }
	}
	a.iterations = t
}
