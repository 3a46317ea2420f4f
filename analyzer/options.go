package analyzer

import (
	"fmt"
	"regexp"

	"memtrace/internal/moment"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// Question is what is asked of a Profile: how to divide what it holds, and what to tell of it. The zero value asks for
// what a report shows first.
type Question struct {
	// Groupings are names from GroupingNames. None: tag, library and api, with Sites also site, and the report chooses
	// among them.
	Groupings []string
	// Cross asks for Summary.Cross: two names, of the rows and of the columns. None: no crossed table.
	Cross []string
	// Entries is how many of each category's largest parts Summary.Categories lists; negative: all.
	Entries int
	// Expected is what the device counted for the process, by somebody else's word; 0: not known.
	Expected uint64
	// At asks for the state at a moment besides the peaks: "peak", "exit", or the moment of the Options of the replay,
	// which keeps the state at no other.
	At moment.At
	// Sites lists the places in the program that asked for the memory, with their call stacks. It costs the look-up of
	// names in files. In the Options of a replay, it also asks for the places in what is told of OOM events.
	Sites bool
	// ByDevice asks for Summary.Parts: the ledgers and the categories of each device, of the first 32.
	ByDevice bool
	// FullStacks lists every frame of a call stack; otherwise library noise is folded away.
	FullStacks bool
}

// Options say what a replay counts and what it keeps, and hold the first question: that of Summarize, Stacks and
// Follow. The zero value counts everything.
type Options struct {
	Question

	// RuleSets are groupings made of rules, which Groupings and Cross may name beside their own.
	RuleSets []profile.RuleGrouping
	// From and To ask for the part of the run between two moments, and for Summary.Window: what stands before is
	// replayed only, what comes behind is left out. From is the first mark of its name, To the first one behind From.
	// Zero: the run's beginning and end.
	From, To moment.At

	// Devices keeps the blocks of these devices only; empty keeps all.
	Devices []int16
	// Tag keeps blocks whose tag path is this one or lies below it.
	Tag string
	// Library keeps blocks whose calling library's name contains this text.
	Library string
	// Focus keeps blocks with a tag, name, module, call, library, thread, or a function or file of their call stack
	// that it matches; Ignore drops them.
	Focus, Ignore *regexp.Regexp
	// OwnerBy names a grouping of which only the keys that OwnerIs accepts are kept: the peak is then that of these
	// owners. Categories that depend on how long a block lives count as they do before it is freed. It needs Ahead.
	OwnerBy string
	OwnerIs func(key string) bool

	// Ahead, if set, is the same trace once more. It is read to its end before the first event is replayed when Focus,
	// Ignore or Training ask for names, since a trace may hold names behind its events.
	Ahead trace.Source
	// Symbols says where the names of call stacks are looked for.
	Symbols symbol.Options
	// Training asks for Summary.Training, with the categories of the first of RuleSets. It needs Ahead.
	Training bool
	// Timeline asks for Summary.Timeline, divided by a grouping or by ByUse; "": without it.
	Timeline string
	// HistoryBlocks asks for Summary.History, with so many blocks at most; 0: without it.
	HistoryBlocks int
	// HistoryBy are groupings that the owners of Summary.History have keys of, besides its own.
	HistoryBy []string
	// Own says which files are the program's own code where their folders do not: globs for whole parts of a path, in
	// which * stands for any text; behind "!" stands what is not. Later ones win. See CheckOwn.
	Own []string

	// Keyframes lets a window begin at the last keyframe before it, in traces that have some and for questions that are
	// answered as if all was read. Where that turns out not to be so, the error is ErrKeyframes.
	Keyframes bool

	// Progress, if set, is called after every batch with the number of bytes read so far.
	Progress func(bytesRead int64)
}

// defaultGroupings are what a summary divides by when it is not told.
var defaultGroupings = []string{"tag", "library", "api"}

// checkAhead refuses moments that only Options.Ahead could find, where there is none.
func (o *Options) checkAhead() error {
	for i, at := range []moment.At{o.At, o.From, o.To} {
		if at.Kind == moment.Iteration {
			return fmt.Errorf("the moment %s needs to be found first", at)
		}
		if (at.NeedsAhead() || i > 0 && at.Kind == moment.OOM) && o.Ahead == nil {
			return fmt.Errorf("the moment %s needs the trace once more to be read ahead", at)
		}
	}
	return nil
}

// NeedsAhead reports whether something that was asked for depends on what stands behind it in the trace.
func (o *Options) NeedsAhead() bool {
	return o.Focus != nil || o.Ignore != nil || o.OwnerBy != "" || o.Training || o.At.NeedsAhead() || !o.To.IsZero() ||
		o.From.NeedsAhead() || o.From.Kind == moment.OOM
}

// selection is what passes the filters.
func (o *Options) selection() profile.Selection {
	return profile.Selection{Devices: o.Devices, Tag: o.Tag, Library: o.Library, Focus: o.Focus, Ignore: o.Ignore}
}

// filter returns what passes the filters; nil: all.
func (o *Options) filter(byRules []*profile.Grouping) (*profile.Filter, error) {
	selection := o.selection()
	if o.OwnerBy != "" {
		by, err := profile.PickGroupings([]string{o.OwnerBy}, byRules)
		if err != nil {
			return nil, err
		}
		selection.By, selection.Is = by[0], o.OwnerIs
	}
	return profile.NewFilter(selection), nil
}

// window returns nil where the whole run was asked for.
func (o *Options) window() (*window, error) {
	if err := o.checkAhead(); err != nil {
		return nil, err
	}
	from, to := o.From, o.To
	if to.Kind == moment.Exit {
		to = moment.At{}
	}
	if err := moment.CheckWindow(from, to); err != nil || from.IsZero() && to.IsZero() {
		return nil, err
	}
	return &window{from: from, to: to, began: from.IsZero(), marks: make(map[trace.StringID]bool)}, nil
}
