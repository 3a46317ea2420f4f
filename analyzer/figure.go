package analyzer

import (
	"math"

	"memtrace/analyzer/report"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// figure is a part of the summary that is counted while the trace is replayed. To add one, write its file and name it
// in newFigures.
type figure interface {
	// needs returns what the figure must see; it may change between batches.
	needs() need
	// opened and closed report blocks that pass the filters, after the totals count them.
	opened(x *change)
	closed(x *change)
	// passed reports a late allocation whose block had ended: it counts, and was never seen live.
	passed(b *heap.Block)
	// moved reports that a live block has another origin.
	moved(x *relabel)
	// event reports an event, after what it did to blocks.
	event(e *trace.Event)
	// restart forgets what was counted and what was highest: the window begins.
	restart(at int64)
	// answer adds the figure to a summary that has its levels.
	answer(q *query, s *report.Summary)
	// answerLast adds what must come after the rest of the summary, such as what names call stacks that nothing else
	// shows.
	answerLast(q *query, s *report.Summary)
}

// need is what a figure must see. Plain allocations and frees are a framework's without anything special about them:
// nearly all that a training program does. They are replayed by columns unless a figure needs them one by one. Where
// they come as rows for another reason, every figure sees them that sees others of their kind.
type need struct {
	events kinds
	blocks bool
	plain  bool
}

// kinds is a set of kinds of events.
type kinds uint64

const allKinds kinds = math.MaxUint64

func kindsOf(list ...trace.EventKind) (set kinds) {
	for _, kind := range list {
		set |= 1 << kind
	}
	return set
}

// change is what an event did to a block of an account.
type change struct {
	id    uint32
	block *heap.Block
	event *trace.Event
	stats *profile.AccountStats // nil for an account without detail
	cell  *profile.Cell         // nil likewise
	began uint64                // of a block that ends: number of its beginning among its account's events
}

// relabel is the change of a live block's origin.
type relabel struct {
	block    *heap.Block
	from, to *profile.Cell
	began    uint64 // number of the block's beginning among its account's events
	past     bool   // it holds from the block's beginning on
}

// noFigure has the methods that a figure has no use for.
type noFigure struct{}

func (noFigure) opened(*change)                     {}
func (noFigure) closed(*change)                     {}
func (noFigure) passed(*heap.Block)                 {}
func (noFigure) moved(*relabel)                     {}
func (noFigure) event(*trace.Event)                 {}
func (noFigure) restart(int64)                      {}
func (noFigure) answer(*query, *report.Summary)     {}
func (noFigure) answerLast(*query, *report.Summary) {}

// newFigures returns those that the options ask for, in the order in which they see events and add to the summary.
func newFigures(r *replayer, opts *Options, followed *overTime) figures {
	r.marks.accounts, r.marks.losses = &r.accounts, &r.losses
	r.samples.r = r
	list := []figure{&r.launches, &r.iterationCounts, &r.marks, &r.samples, &r.ooms}
	own := len(list)
	if opts.HistoryBlocks > 0 {
		list = append(list, newHistoryFigure(r, opts))
	}
	if followed != nil {
		followed.r = r
		list = append(list, followed)
	}
	return figures{list: list, own: own}
}

// figures are those of a replay, and of them the ones that see blocks and each kind of events.
type figures struct {
	list   []figure
	own    int    // the first ones, which every replay has and a bookmark holds
	needs  []need // when they were sorted last
	blocks []figure
	events [64][]figure // by kind
	plain  bool         // plain allocations and frees must come as rows
}

// sort asks every figure what it needs.
func (f *figures) sort() {
	changed := len(f.needs) != len(f.list)
	for i, v := range f.list {
		if needs := v.needs(); changed || f.needs[i] != needs {
			changed = true
			break
		}
	}
	if !changed {
		return
	}
	f.needs, f.blocks, f.plain, f.events = f.needs[:0], nil, false, [64][]figure{}
	for _, v := range f.list {
		needs := v.needs()
		if f.needs = append(f.needs, needs); needs.blocks {
			f.blocks = append(f.blocks, v)
		}
		for kind := range f.events {
			if needs.events>>kind&1 != 0 {
				f.events[kind] = append(f.events[kind], v)
			}
		}
		f.plain = f.plain || needs.plain
	}
}
