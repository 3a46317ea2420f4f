package runprofile

import (
	"fmt"

	"memtrace/analyzer"
	"memtrace/analyzer/report"
	"memtrace/internal/moment"
	"memtrace/trace"
)

// Extra are the groupings that a profile has beside those of a report.
var Extra = []string{"category", "phase"}

// entries is how many tags and places each category has at most.
const entries = 20

// Source is one trace, which is read several times.
type Source struct {
	// Open opens it, and sets the Ahead of options that need it. The caller calls done.
	Open func(o *analyzer.Options) (src trace.Source, done func(), err error)
	// Complete adds to the report what a replay leaves out; info is all that the trace says.
	Complete func(info trace.Info, s *report.Summary) error
	// Options of a report: Sites and Training, with rules named "category", and no groupings.
	Options  analyzer.Options
	Memtrace string // the version that makes the profile
}

// replay reads the trace. The caller closes the result, then calls done.
func (s *Source) replay(o analyzer.Options) (p *analyzer.Profile, info trace.Info, done func(), err error) {
	src, done, err := s.Open(&o)
	if err != nil {
		return nil, nil, nil, err
	}
	if p, err = analyzer.Replay(src, o); err != nil {
		done()
		return nil, nil, nil, err
	}
	return p, src.Info(), done, nil
}

// Make makes the profile of a trace. It is replayed once, and again for each of the moments that only a replay keeps.
// Errors are those of Open, of analyzer.Replay and
// of analyzer.Profile.Report.
func Make(src Source) (*Profile, error) {
	replayed, info, done, err := src.replay(src.Options)
	if err != nil {
		return nil, err
	}
	defer done()
	defer replayed.Close()
	s, err := replayed.Report(src.Options.Question)
	if err != nil {
		return nil, err
	}
	if err := src.Complete(info, s); err != nil {
		return nil, err
	}
	p := &Profile{Body: Body{Summary: s, By: groupsOf(s), Rules: src.Options.RuleSets[0].Rules.Name,
		Own: append([]string{}, src.Options.Own...)}}
	if err := p.addExtra(replayed, src.Options.Question); err != nil {
		return nil, err
	}
	table := newStackTable()
	if err := p.addMoments(&src, replayed, table); err != nil {
		return nil, err
	}
	p.Body.Stacks, p.Body.Names = table.stacks, table.names
	p.Head = *report.HeadOf(s)
	p.Head.Memtrace = src.Memtrace
	p.Body.Hidden = hide(s)
	thinIterations(s)
	return p, nil
}

// groupsOf lists the groupings of a summary.
func groupsOf(s *report.Summary) []string {
	list := []string{}
	for i := range s.Ledgers {
		list = append(list, s.Ledgers[i].By)
	}
	return list
}

// addExtra adds the groupings that have to be asked for.
func (p *Profile) addExtra(replayed *analyzer.Profile, q analyzer.Question) error {
	q.Groupings, q.Entries = Extra, entries
	more, err := replayed.Report(q)
	if err != nil {
		return err
	}
	s := p.Body.Summary
	s.Groups, s.Ledgers = append(s.Groups, more.Groups...), append(s.Ledgers, more.Ledgers...)
	s.Categories = more.Categories
	return nil
}

// addMoments adds the moments of the whole run, and those that the trace has besides.
func (p *Profile) addMoments(src *Source, replayed *analyzer.Profile, table *stackTable) error {
	s := p.Body.Summary
	p.Body.Moments = []Moment{}
	for _, at := range []string{"peak", "exit"} {
		if err := p.addMoment(replayed, src.Options.Question, at, table); err != nil {
			return err
		}
	}
	for _, at := range momentsOf(s) {
		o := src.Options
		var err error
		if o.At, err = moment.Parse(at); err != nil {
			return err
		}
		again, _, done, err := src.replay(o)
		if err != nil {
			return err
		}
		err = p.addMoment(again, o.Question, at, table)
		again.Close()
		if done(); err != nil {
			return err
		}
	}
	return nil
}

// momentsOf names the moments that a replay keeps only if it is told to.
func momentsOf(s *report.Summary) (list []string) {
	if s.Main().AllocCount > 0 && s.Process.Ended != report.EndedRunning {
		list = append(list, "teardown")
	}
	return append(list, s.NamedMoments()...)
}

// addMoment adds what both levels held at a moment.
func (p *Profile) addMoment(replayed *analyzer.Profile, q analyzer.Question, at string, table *stackTable) error {
	var err error
	if q.At, err = moment.Parse(at); err != nil {
		return err
	}
	q.Groupings = []string{"category", "module"}
	for _, level := range []string{report.LevelFramework, report.LevelDriver} {
		set, err := replayed.Stacks(q, level)
		if err != nil {
			return fmt.Errorf("moment %s: %w", at, err)
		}
		if m := momentOf(set, table); len(m.Cells.Bytes) > 0 {
			m.What = at
			p.Body.Moments = append(p.Body.Moments, m)
		}
	}
	return nil
}

// momentOf makes the cells of a level, of which the largest come first.
func momentOf(set *analyzer.StackSet, table *stackTable) Moment {
	m := Moment{Level: set.Level, TimeNS: set.TimeNS,
		Cells: Cells{Category: []int{}, Module: []int{}, Stack: []int{}, Bytes: []uint64{}}}
	c := &m.Cells
	add := func(labels []string, stack int, bytes uint64) {
		c.Category, c.Module = append(c.Category, table.named(labels[0])), append(c.Module, table.named(labels[1]))
		c.Stack, c.Bytes = append(c.Stack, stack), append(c.Bytes, bytes)
	}
	rest := uint64(0)
	for i := range set.Rows {
		row := &set.Rows[i]
		switch {
		case row.PeakBytes == 0:
		case len(c.Bytes) == MaxCells:
			rest += row.PeakBytes
		default:
			frames := make([]Frame, len(row.Frames))
			for k, f := range row.Frames {
				frames[k] = frameOf(f, set.Place(f), set.User(f))
			}
			add(row.Labels, table.add(frames), row.PeakBytes)
		}
	}
	if rest > 0 {
		add([]string{Rest, Rest}, -1, rest)
	}
	return m
}

// Rest is the name of the category and of the module of what is beyond MaxCells.
const Rest = "(rest)"
