package analyzer

import (
	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/cause"
	"memtrace/internal/heap"
	"memtrace/internal/oom"
	"memtrace/internal/profile"
	"memtrace/internal/training"
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
	s, err := p.Report(opts.Question)
	// a moment that never came is explained by the whole run
	if p.replayer.begin != nil && (err != nil || notWhole(src, p.replayer) != "") {
		return nil, ErrKeyframes
	}
	return s, err
}

// summary turns what was counted into the value that reports are made of: each part needs those before it.
func (q *query) summary() (*report.Summary, error) {
	info, r := q.src.Info(), q.replayer
	q.resolver.StreamsKnown = info["adapter.torch.streams"] == "on"
	q.resolver.PoolsKnown = info["adapter.torch.pools"] == "on"
	defer r.ooms.finishForNow()()
	s := &report.Summary{Process: q.process(), Versions: report.Versions(info), NullGPU: info["nullgpu"] == "1",
		Filter: q.opts.words()}
	report.AddPools(s.Versions, q.resolver.OwnPools())
	if r.window != nil {
		if err := r.window.finish(r, s.Process.DurationNS); err != nil {
			return nil, err
		}
	}
	s.Objects = r.heap.Objects.Counts()
	s.LostRecords, s.Health = q.health()
	q.addLevels(s)
	for _, f := range r.figures.list {
		f.answer(q, s)
	}
	q.addThinned(s, info)
	q.addTables(s)
	held, err := q.addMoments(s)
	if err != nil {
		return nil, err
	}
	q.addGroupingNames(s)
	s.Allocator = q.allocatorReport(info, s)
	s.IdleAtPeak = r.idle.value(s)
	q.addCategories(s, held, mainAccount(s))
	q.addStackHealth(s)
	s.KeptBy = s.KeptByIn(info, q.scratch)
	q.addTraining(s, info)
	q.addTrends(s, info)
	for _, f := range r.figures.list {
		f.answerLast(q, s)
	}
	q.addNotes(s, info)
	return s, nil
}

// addLevels adds the totals of all accounts and devices, and how far lost records leave them certain.
func (q *query) addLevels(s *report.Summary) {
	a, window := q.accounts, q.replayer.window
	total := func(account heap.Account, m *heap.Meter) report.Level {
		return window.level(heap.LevelOf(m), account, profile.AllSlots)
	}
	s.Driver = total(heap.AccountDriver, &a.details[heap.AccountDriver].Total)
	s.Framework = total(heap.AccountFramework, &a.details[heap.AccountFramework].Total)
	q.certain = newCertainty(q.replayer, q.src, s.LostRecords)
	s.Bounds = q.certain.bounds
	s.Devices = q.deviceList()
	s.Other, s.Implicit = map[string]report.Level{}, map[string]report.ImplicitFrees{}
	for account := range heap.AccountCount {
		if l := total(account, &a.totals[account]); !l.Empty() && a.details[account] == nil {
			s.Other[account.String()] = l
		}
		if n := a.implicit[account]; n.Count > 0 {
			s.Implicit[account.String()] = n
		}
	}
	if s.Bounds == nil {
		framework := a.details[heap.AccountFramework]
		a.requests.Of(&s.Framework, framework, profile.AllSlots)
		for i := range s.Devices {
			a.requests.Of(&s.Devices[i].Framework, framework, profile.DeviceSlot(s.Devices[i].Index))
		}
	}
	q.certain.bound(s, a)
}

// addTables adds the levels divided: by groupings, by lifetimes, by the window's ends.
func (q *query) addTables(s *report.Summary) {
	s.Groups = q.groupList(s)
	if q.replayer.window != nil {
		s.Window = q.replayer.window.value(q, s)
	}
	s.Lifetimes, s.Heights = map[string]report.LifetimeHist{}, []report.Heights{}
	for _, a := range q.detailed(s) {
		s.Lifetimes[a.String()] = q.accounts.details[a].Life.Hist()
		if v := q.accounts.heights[a].Value(a.String(), s.EndNS()); v != nil {
			s.Heights = append(s.Heights, *v)
		}
	}
	selection := q.opts.selection()
	s.Unmatched = q.accounts.filter.Unmatched(&selection, q.replayer.device.Holdings.Used(), q.resolver)
}

// addGroupingNames names the groupings that the report divides by.
func (q *query) addGroupingNames(s *report.Summary) {
	if s.Asked = len(q.Groupings) > 0; !s.Asked {
		s.By = []string{bestGrouping(s)}
		return
	}
	for _, by := range q.groupings {
		s.By = append(s.By, by.Name)
	}
}

// addStackHealth adds how whole call stacks are, and what kept their frames from being named.
func (q *query) addStackHealth(s *report.Summary) {
	s.Health.Stacks = profile.StackHealth(q.resolver.Stacks,
		q.stackCounts(heap.AccountDriver), q.stackCounts(heap.AccountFramework))
	s.Health.SymbolProblems = append([]string{}, q.resolver.Stacks.Problems()...)
}

// addTraining adds the iterations, and the advice that goes by what memory was for.
func (q *query) addTraining(s *report.Summary, info trace.Info) {
	if t := q.accounts.iterations; t != nil {
		s.Training = t.Value(q.opts.RuleSets[0].Rules, info, q.replayer.parameters.Values(), ending(s),
			q.accounts.details[t.Account].Total.Epoch)
		blocks := q.accounts.details[heap.AccountFramework]
		s.LoadedTwiceBytes = oom.LoadedTwice(blocks, q.resolver)
		s.ParameterCopies = oom.ParameterCopies(blocks, q.resolver, func(python trace.StackID) string {
			place, _ := q.calledBy(0, python)
			return place
		})
	}
	oom.CompleteAdvice(s)
}

// ending is what is known of the end when the program's passes are judged.
func ending(s *report.Summary) training.Ending {
	p := &s.Process
	whole := p.Ended == report.EndedClean && p.Stopped == "" && !p.Snapshot
	graphs, graphless := s.KeptBy.Graphs()
	return training.Ending{TimeNS: s.EndNS(), Graphs: graphs, GraphlessBytes: graphless,
		Over: whole && p.ExitStatus != nil && *p.ExitStatus == 0}
}

// addTrends adds what grew.
func (q *query) addTrends(s *report.Summary, info trace.Info) {
	judge := cause.GrowthJudge{Held: q.accounts.held, Summary: s, Resolver: q.resolver,
		Imported: info[cause.ImportKindKey] != "", Reserves: q.reserves}
	s.Trend, s.OtherTrends = judge.Judge(mainAccount(s))
}

// reserves reports whether a call stack takes driver memory for those who report what they cut out of it, pools of the
// program's own among them.
func (q *query) reserves(stack uint64) bool {
	return q.replayer.poolStacks[stack] || q.replayer.reserves(callstack.PairOf(stack).Native)
}

// addNotes adds what limits the figures.
func (q *query) addNotes(s *report.Summary, info trace.Info) {
	s.Notes = []string{}
	s.AddNotes(cause.Notes(s, info)...)
	s.AddNotes(cause.CategoryNotes(s.Categories)...)
	for _, text := range q.resolver.Stacks.Notes() {
		s.AddNotes(report.NewFinding("symbol-problems", text, 0, "health.symbol_problems"))
	}
}

// detailed lists the levels that had events, the framework first.
func (q *query) detailed(s *report.Summary) []heap.Account {
	var list []heap.Account
	if !s.Framework.Empty() {
		list = append(list, heap.AccountFramework)
	}
	if !s.Driver.Empty() {
		list = append(list, heap.AccountDriver)
	}
	return list
}
