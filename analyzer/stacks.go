package analyzer

import (
	"cmp"
	"encoding/binary"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/symbol"
	"memtrace/trace"
)

// StackSet says which call stacks stood behind the memory of one level. Its rows add up to the level.
type StackSet struct {
	Process  report.Process
	Versions map[string]string
	NullGPU  bool
	Level    string   // "framework" or "driver"
	Moment   string   // "peak", or what Question.At asked for
	TimeNS   int64    // when that was
	Filter   []string // the filters that were on, in words
	Labels   []string // groupings that tell rows of one stack apart
	Rows     []StackRow
	Problems []string // what kept frames from being named, and what to do
	Notes    []string // of the summary

	LostRecords uint64
	Bounds      *report.Bounds // what lost records mean for the values; nil if there are none
	// of what stood at the set's moment, the bytes that are certain; all of them if nothing was lost
	Certain uint64
	Health  report.Health

	classifier callstack.Classifier
}

// StackRow is one call stack.
type StackRow struct {
	Frames     []symbol.Frame // Python and native frames, innermost first; empty where no stack was recorded
	PeakBytes  uint64         // what stood at the set's moment, the peak of the level unless another one was asked for
	LiveBytes  uint64         // at the end of the trace
	AllocBytes uint64
	AllocCount uint64
	FreeCount  uint64
	Key        uint64 // tells the stack from others of the same set; the same for the same trace
	// keys of StackSet.Labels, in their order; nil for blocks that are gone and were forgotten one by one
	Labels []string
}

// User reports whether a frame is the program's own code and not that of a library.
func (s *StackSet) User(f symbol.Frame) bool { return s.classifier.User(f) }

// Place is the readable form of a frame's file, the same on every machine: relative to the program's working directory,
// or from its package's name on. "" without a file.
func (s *StackSet) Place(f symbol.Frame) string { return s.classifier.Place(f.File) }

// Stacks replays a trace and returns the stacks of a level by the question of the options. Errors are those of Replay
// and of Profile.Report.
func Stacks(src trace.Source, opts Options, level string) (*StackSet, error) {
	p, err := Replay(src, opts)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	return p.Stacks(opts.Question, level)
}

// Stacks returns every call stack of a level that passes the filters, "" for the level that reports put first. Library
// noise is folded unless Question.FullStacks says otherwise. Groupings divide the rows of a stack further, and label
// them. Errors are those of Report.
func (p *Profile) Stacks(q Question, level string) (*StackSet, error) {
	labels := len(q.Groupings) > 0
	if !labels {
		q.Groupings = []string{"tag"} // what a summary cannot do without
	}
	a, err := p.query(&q)
	if err != nil {
		return nil, err
	}
	defer a.resolver.Stacks.BeginQuestion()()
	s, err := a.summary()
	if err != nil {
		return nil, err
	}
	return a.stackSet(s, cmp.Or(level, s.MainLevel()), labels), nil
}

// labelling tells rows apart by the keys of groupings.
type labelling struct {
	resolver *profile.Resolver
	by       []*profile.RowIndex
}

// labelled is a stack under labels.
type labelled struct {
	stack  uint64
	labels string // numbers of the keys, as varints; "" without labels
}

// of returns the row of a block; o is nil where only the stack is known.
func (l *labelling) of(stack uint64, o *profile.Origin) labelled {
	if o == nil || len(l.by) == 0 {
		return labelled{stack: stack}
	}
	var numbers []byte
	for _, index := range l.by {
		numbers = binary.AppendUvarint(numbers, uint64(index.Number(index.By.ID(l.resolver, o))))
	}
	return labelled{stack, string(numbers)}
}

// keys turns the numbers into text.
func (l *labelling) keys(row labelled) []string {
	if row.labels == "" {
		return nil
	}
	keys := make([]string, len(l.by))
	numbers := []byte(row.labels)
	for i, index := range l.by {
		number, n := binary.Uvarint(numbers)
		keys[i], numbers = index.Keys[number], numbers[n:]
	}
	return keys
}

// stackSet makes the rows of a level, with labels by the groupings of the question.
func (q *query) stackSet(s *report.Summary, level string, labels bool) *StackSet {
	account := heap.AccountDriver
	if level == heap.AccountFramework.String() {
		account = heap.AccountFramework
	}
	set := &StackSet{Process: s.Process, Versions: s.Versions, NullGPU: s.NullGPU, Level: level, Moment: "peak",
		Filter: s.Filter, Rows: []StackRow{},
		LostRecords: s.LostRecords, Bounds: s.Bounds, Health: s.Health}
	stacks := q.resolver.Stacks
	stacks.Start()
	set.classifier = stacks.Classifier
	l := labelling{resolver: q.resolver}
	if labels {
		for _, g := range q.groupings {
			l.by, set.Labels = append(l.by, q.rowIndex(g)), append(set.Labels, g.Name)
		}
	}
	rows := make(map[labelled]*StackRow)
	row := func(id labelled) *StackRow {
		r := rows[id]
		if r == nil {
			r = &StackRow{Key: id.stack}
			rows[id] = r
		}
		return r
	}
	for _, r := range q.stackCounts(account) {
		sum := row(l.of(r.ID, r.Origin))
		if r.Older && sum.AllocCount < -r.Allocs { // its cell was retired
			sum = row(l.of(r.ID, nil))
		}
		sum.LiveBytes += r.Live
		sum.AllocBytes += r.AllocBytes
		sum.AllocCount += r.Allocs
		sum.FreeCount += r.Frees
	}
	m := q.wanted(s, account, q.At)
	if !q.At.IsZero() {
		set.Moment = q.At.String()
	}
	set.TimeNS = m.Time
	for _, h := range m.Held[account] {
		row(l.of(callstack.Pair{Native: h.Stack, Python: h.PyStack}.ID(), &h.Origin)).PeakBytes += h.Bytes
		set.Certain += q.certain.lowerHeld(&h)
	}
	for id, r := range rows {
		r.Frames = stacks.Of(callstack.PairOf(id.stack)).Frames(q.FullStacks)
		r.Labels = l.keys(id)
		set.Rows = append(set.Rows, *r)
	}
	slices.SortFunc(set.Rows, func(a, b StackRow) int {
		return cmp.Or(cmp.Compare(b.PeakBytes, a.PeakBytes), cmp.Compare(b.LiveBytes, a.LiveBytes),
			cmp.Compare(b.AllocBytes, a.AllocBytes),
			cmp.Compare(a.Key, b.Key), slices.Compare(a.Labels, b.Labels))
	})
	set.Problems = stacks.Problems()
	set.Notes = s.Notes
	return set
}

// stackCounts lists an account's stacks, some of them in several pieces.
func (q *query) stackCounts(a heap.Account) []profile.StackCount {
	list := q.accounts.details[a].Cells.StackCounts()
	q.replayer.window.uncount(a, func(o *profile.Origin, older profile.Counts) {
		list = append(list, profile.StackCount{ID: profile.StackID(nil, o), Origin: new(*o), Older: true,
			Counts: profile.Counts{Allocs: -older.Allocs, AllocBytes: -older.AllocBytes}})
	})
	return list
}
