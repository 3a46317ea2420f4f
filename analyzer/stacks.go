package analyzer

import (
	"cmp"
	"slices"

	"memtrace/analyzer/symbol"
	"memtrace/trace"
)

// StackSet says which call stacks stood behind the memory of one level. Its rows add up to the level.
type StackSet struct {
	Process  Process
	Versions map[string]string
	NullGPU  bool
	Level    string   // "framework" or "driver"
	Moment   string   // "peak", or what Options.At asked for
	TimeNS   int64    // when that was
	Filter   []string // the filters that were on, in words
	Rows     []StackRow
	Problems []string // what kept frames from being named, and what to do
	Notes    []string // of the summary

	LostRecords uint64
	Health      Health

	judge judge
}

// StackRow is one call stack.
type StackRow struct {
	Frames     []symbol.Frame // Python and native frames, innermost first; empty where no stack was recorded
	PeakBytes  uint64         // what stood at the set's moment, the peak of the level unless another one was asked for
	LiveBytes  uint64         // at the end of the trace
	AllocBytes uint64
	AllocCount uint64
	FreeCount  uint64
	Key        uint64 // tells the row from others of the same set; the same for the same trace
}

// User reports whether a frame is the program's own code and not that of a library.
func (s *StackSet) User(f symbol.Frame) bool { return s.judge.user(f) }

// Place is the readable form of a frame's file, the same on every machine: relative to the program's working directory, or from its package's name on. ""
// without a file.
func (s *StackSet) Place(f symbol.Frame) string { return s.judge.place(f.File) }

// Stacks reads a trace to its end and returns every call stack of a level that passes the filters, "" for the level that reports put first. Library noise is
// folded unless Options.FullStacks says otherwise. Groupings do not matter. Errors are those of Summarize.
func Stacks(src trace.Source, opts Options, level string) (*StackSet, error) {
	opts.Groupings = []string{"tag"}
	live, err := NewLive(src, opts)
	if err != nil {
		return nil, err
	}
	defer live.Close()
	s, err := live.Update()
	if err != nil {
		return nil, err
	}
	return live.collector.stackSet(s, cmp.Or(level, s.MainLevel()), &opts), nil
}

// byStack tells blocks apart by both of their call stacks. It is no grouping for people.
var byStack = grouping{name: "stack",
	id:  func(_ *resolver, o *origin) uint64 { return stackPair{o.stack, o.pyStack}.id() },
	key: func(_ *resolver, id uint64) string { return uintText(id) }}

func (c *collector) stackSet(s *Summary, level string, opts *Options) *StackSet {
	account := AccountDriver
	if level == AccountFramework.String() {
		account = AccountFramework
	}
	set := &StackSet{Process: s.Process, Versions: s.Versions, NullGPU: s.NullGPU, Level: level, Moment: "peak", Filter: s.Filter, Rows: []StackRow{},
		LostRecords: s.LostRecords, Health: s.Health}
	stacks := c.resolver.stacks
	stacks.start()
	set.judge = stacks.judge
	rows := make(map[uint64]*StackRow)
	row := func(id uint64) *StackRow {
		r := rows[id]
		if r == nil {
			r = &StackRow{Key: id}
			rows[id] = r
		}
		return r
	}
	for _, r := range c.stackCounts(account) {
		sum := row(r.id)
		sum.LiveBytes += r.live
		sum.AllocBytes += r.allocBytes
		sum.AllocCount += r.allocs
		sum.FreeCount += r.frees
	}
	m := c.wanted(s, account, opts.At)
	if !opts.At.IsZero() {
		set.Moment = opts.At.String()
	}
	set.TimeNS = m.time
	for _, h := range m.held[account] {
		row(stackPair{h.stack, h.pyStack}.id()).PeakBytes += h.bytes
	}
	for id, r := range rows {
		r.Frames = stacks.of(pairOf(id)).frames(opts.FullStacks)
		set.Rows = append(set.Rows, *r)
	}
	slices.SortFunc(set.Rows, func(a, b StackRow) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), cmp.Compare(b.LiveBytes, a.LiveBytes), cmp.Compare(b.AllocBytes, a.AllocBytes),
			cmp.Compare(a.Key, b.Key))
	})
	set.Problems = stacks.problems()
	set.Notes = s.Notes
	return set
}

// stackCount is what a pair of stacks amounts to over the whole run.
type stackCount struct {
	id   uint64
	live uint64
	counts
}

// stackCounts lists an account's stacks, some of them in several pieces.
func (c *collector) stackCounts(a Account) []stackCount {
	d := c.details[a]
	var list []stackCount
	for n := range d.cells.list {
		if v := &d.cells.list[n]; v.allocs > 0 {
			list = append(list, stackCount{stackPair{v.stack, v.pyStack}.id(), v.current, v.counts})
		}
	}
	if d.cells.retired != nil {
		for id, v := range d.cells.retired[len(c.groupings)] {
			list = append(list, stackCount{id: id, counts: v})
		}
	}
	return list
}

// frames copies the frames of a stack.
func (s *callStack) frames(full bool) []symbol.Frame {
	list := s.shown
	if full {
		list = s.all
	}
	frames := make([]symbol.Frame, len(list))
	for i, f := range list {
		frames[i] = f.Frame
		if f.short != "" && !full {
			frames[i].Function = f.short
		}
	}
	return frames
}
