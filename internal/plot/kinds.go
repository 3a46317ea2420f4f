package plot

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/rules"
)

// Run is a trace to draw.
type Run struct {
	Name    string // in legends
	Summary *report.Summary
	Flame   *Flame // nil unless call stacks were read, for a flame graph
}

// Options select how values are shown.
type Options struct {
	Title    string  // "": made from the runs
	MinShare float64 // percent; categories below are joined in one bar
	Baseline bool    // overlay: less what each run held at first
	Align    bool    // overlay: time counts from each run's first allocation
	Events   bool    // timeline, overlay: every allocation and free is as wide as the next one
}

// Kind is a kind of picture. A new one is a row of Kinds.
type Kind struct {
	Name, Doc string
	Many      bool // accepts more than one run
	make      func(runs []Run, o Options) (*Chart, error)
}

// KindFlame is the kind that needs Run.Flame.
const KindFlame = "flamegraph"

// Kinds lists all sorts of pictures.
var Kinds = []Kind{
	{"timeline", "memory over time by category, with the peak, iterations and marks", false, timeline},
	{"iterations", "the peak of each training iteration, by category", false, iterations},
	{"categories", "the peak by category, a panel for each run", true, categories},
	{"bars", "the peak by two sets of rules, beside each other", false, twoBars},
	{"overlay", "memory over time of several runs", true, overlay},
	{KindFlame, "the peak by call stack", false, flame},
	{"sizes", "the peak and all allocations by size of block", false, sizes},
	{"segments", "the framework's allocator: blocks, holes, and what pins them", false, segments},
}

// Make makes a chart; with kind "", the one that fits the runs best.
func Make(kind string, runs []Run, o Options) (*Chart, error) {
	if kind == "" {
		if kind = "timeline"; len(runs) > 1 {
			kind = "overlay"
		}
	}
	for _, k := range Kinds {
		if k.Name != kind {
			continue
		}
		if len(runs) > 1 && !k.Many {
			return nil, fmt.Errorf("%s cannot be drawn from %d traces: name one, or choose overlay or categories",
				kind, len(runs))
		}
		chart, err := k.make(runs, o)
		if err != nil && kind == KindFlame { // nothing else was read
			return nil, fmt.Errorf("%s cannot be drawn: %w", kind, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%s cannot be drawn: %w; what there is gives %s", kind, err, possible(runs, o))
		}
		chart.Kind = kind
		if o.Title != "" {
			chart.Title = o.Title
		}
		return chart, nil
	}
	return nil, fmt.Errorf("there is no kind %q; choose from %s", kind, strings.Join(Names(), ", "))
}

// Names lists the names of all kinds.
func Names() []string {
	var names []string
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

func possible(runs []Run, o Options) string {
	var names []string
	for _, k := range Kinds {
		if len(runs) > 1 && !k.Many {
			continue
		}
		if _, err := k.make(runs, o); err == nil {
			names = append(names, k.Name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func signed(n uint64) int64 { return int64(min(n, math.MaxInt64)) }

var levelNames = map[string]string{"framework": "framework's blocks", "driver": "driver memory"}

func levelName(level string) string {
	if name := levelNames[level]; name != "" {
		return name
	}
	return level
}

func levelOf(s *report.Summary, level string) report.Level {
	if level == report.LevelFramework {
		return s.Framework
	}
	return s.Driver
}

// heightSeries converts highest values of equal intervals to a series.
func heightSeries(name string, h report.Heights, end int64) Series {
	s := Series{Name: name, Level: true}
	for i, bytes := range h.PeakBytes {
		s.X = append(s.X, h.FromNS+int64(i)*h.WidthNS)
		s.Bytes = append(s.Bytes, signed(bytes))
	}
	if n := len(s.X); n > 0 { // the last value holds up to the end
		s.X = append(s.X, max(end, s.X[n-1]+1))
		s.Bytes = append(s.Bytes, s.Bytes[n-1])
	}
	return s
}

var errNothing = errors.New("nothing was allocated")

// noteOf names the run of the picture, and the part of the run.
func noteOf(run Run) string {
	if w := run.Summary.Window; w != nil {
		return fmt.Sprintf("%s, from %s to %s", run.Name, cmp.Or(w.From, "the beginning"), cmp.Or(w.To, "the end"))
	}
	return run.Name
}

func timeline(runs []Run, o Options) (*Chart, error) {
	s := runs[0].Summary
	if len(s.Heights) == 0 {
		return nil, errNothing
	}
	c := &Chart{Title: "GPU memory over time", Note: noteOf(runs[0]), XLabel: "time since the start", Time: true}
	h := s.History
	if h != nil && len(h.Blocks) > 0 && h.LeftOut == 0 && len(h.By) > 0 {
		return c, c.stackTimeline(withOwners(s), o.Events)
	}
	if o.Events {
		return nil, errors.New("not every block is known; leave out --axis events")
	}
	main := heightSeries("", s.Heights[0], s.EndNS())
	to := c.crop(s, main.X[0], main.lastChange())
	for i, h := range s.Heights {
		one := heightSeries(levelName(h.Level), h, s.EndNS()).cut(main.X[0], to)
		one.Filled = i == 0
		c.Series = append(c.Series, one)
	}
	c.markTimeline(s, func(time int64) int64 { return time })
	return c, nil
}

// stackTimeline divides the main level by its owners, with the memory allocated from the driver as a line above it.
func (c *Chart) stackTimeline(s *report.Summary, byEvents bool) error {
	h := s.History
	positions, begin, end := h.Times, s.BeginNS(), max(s.EndNS(), h.Times[len(h.Times)-1])
	at := func(time int64) int64 { return time }
	if byEvents {
		positions, begin, end, c.Time, c.XLabel = eventNumbers(h), int64(h.Older(s)), int64(len(h.Times)), false,
			"allocations and frees"
		at = func(time int64) int64 {
			n, _ := slices.BinarySearch(h.Times, time)
			return int64(n)
		}
	}
	if !byEvents {
		begin, end = h.InMotion(s, begin, end)
		end = c.crop(s, begin, end)
	}
	c.Stack, c.Note = true, c.Note+", by "+h.By[0]
	c.Series, c.Width = stacked(h, positions, begin, end)
	for _, level := range s.Heights[1:] {
		line := heightSeries(levelName(level.Level), level, s.EndNS())
		if line.Line = true; !byEvents {
			line = line.cut(begin, end)
		}
		for i := range line.X {
			line.X[i] = at(line.X[i])
		}
		c.Series = append(c.Series, line)
	}
	if low, high, grows := h.GrowthLine(s.Trend); grows {
		t := s.Trend
		c.Series = append(c.Series, Series{Name: "what stays grows by " + layout.GrowthRate(t),
			Line: true, Growth: true, X: []int64{max(at(t.FromTimeNS), begin), min(at(t.ToTimeNS), end)},
			Bytes: []int64{signed(low), signed(high)}})
	}
	c.markTimeline(s, at)
	return nil
}

// markTimeline marks the peak and out-of-memory errors, and adds lanes below the axis; at is the position of a time on
// the axis.
func (c *Chart) markTimeline(s *report.Summary, at func(time int64) int64) {
	main := levelOf(s, s.Heights[0].Level)
	c.Peak = &Point{at(main.PeakTimeNS), signed(main.PeakBytes), "peak " + report.SizeText(main.PeakBytes)}
	if t := s.Training; t != nil {
		for _, o := range t.OutOfMemory {
			c.OOM = append(c.OOM, at(o.TimeNS))
		}
	}
	c.Lanes = lanesOf(s, at)
}

func iterations(runs []Run, _ Options) (*Chart, error) {
	t := runs[0].Summary.Training
	if t == nil || t.IterationsBy == report.IterationsByNothing {
		return nil, errors.New("no iterations are known; memtrace.step() announces them")
	}
	c := &Chart{Title: "GPU memory at the peak of each iteration", Note: noteOf(runs[0]), XLabel: "iteration (" +
		t.Iterated + ")", Stack: true}
	columns := make([]Series, len(t.Categories))
	reserved := Series{Name: "reserved (peak)", Line: true}
	for i, name := range t.Categories {
		columns[i].Name = layout.CategoryWord(name)
	}
	for _, it := range t.Iterations {
		if !it.Ended || len(it.Peak.Held) != len(columns) {
			continue
		}
		x := signed(it.Number)
		for i, bytes := range it.Peak.Held {
			columns[i].X, columns[i].Bytes = append(columns[i].X, x), append(columns[i].Bytes, signed(bytes))
		}
		reserved.X, reserved.Bytes = append(reserved.X, x), append(reserved.Bytes, signed(it.ReservedPeakBytes))
	}
	if len(reserved.X) == 0 {
		return nil, errors.New("no iteration came to its end")
	}
	for _, column := range columns {
		if slices.Max(column.Bytes) > 0 {
			c.Series = append(c.Series, column)
		}
	}
	if slices.Max(reserved.Bytes) > 0 {
		c.Series = append(c.Series, reserved)
	}
	return c, nil
}

// barsOf returns the bars of one grouping, largest first, then others and untrackable memory.
func barsOf(g *report.Categories) Panel {
	p := Panel{Title: g.By}
	for _, row := range g.Rows {
		bar := Bar{Name: layout.CategoryWord(row.Key), Bytes: signed(row.Bytes)}
		if row.Key == rules.Others {
			bar.Look = Others
		}
		p.Bars = append(p.Bars, bar)
		p.Total += bar.Bytes
	}
	if u := g.Untrackable; u != nil {
		p.Bars = append(p.Bars, Bar{"Untrackable", u.Bytes, Untrackable})
		p.Total += max(u.Bytes, 0)
	}
	return p
}

func categories(runs []Run, o Options) (*Chart, error) {
	c := &Chart{Title: "GPU memory at the peak, by category"}
	for _, run := range runs {
		if len(run.Summary.Categories) == 0 {
			return nil, fmt.Errorf("%s: no categories were counted", run.Name)
		}
		p := barsOf(&run.Summary.Categories[0])
		p.Title = run.Name
		p.Bars = slices.DeleteFunc(p.Bars, func(b Bar) bool { return b.Bytes == 0 })
		if len(p.Bars) == 0 {
			return nil, fmt.Errorf("%s: %w", run.Name, errNothing)
		}
		p.Bars = joinTail(joinSmall(p.Bars, p.Total, o.MinShare))
		c.Panels = append(c.Panels, p)
	}
	return c, nil
}

// joinSmall replaces bars below a share by one that has their sum: nothing is lost.
func joinSmall(bars []Bar, total int64, percent float64) []Bar {
	small := func(b Bar) bool { return b.Look == Plain && float64(b.Bytes)*100 < percent*float64(total) }
	kept, rest := slices.DeleteFunc(slices.Clone(bars), small), slices.DeleteFunc(slices.Clone(bars), func(b Bar) bool {
		return !small(b)
	})
	if len(rest) < 2 { // a single one can be named in the same space
		return bars
	}
	joined := Bar{Name: moreName(len(rest))}
	for _, b := range rest {
		joined.Bytes += b.Bytes
	}
	at := slices.IndexFunc(kept, func(b Bar) bool { return b.Look != Plain })
	if at < 0 {
		at = len(kept)
	}
	return slices.Insert(kept, at, joined)
}

// mostBars is the number of bars that fit in a panel.
const mostBars = 24

// joinTail replaces the smallest plain bars, which are last among them, by one if there are too many.
func joinTail(bars []Bar) []Bar {
	if len(bars) <= mostBars {
		return bars
	}
	special := slices.DeleteFunc(slices.Clone(bars), func(b Bar) bool { return b.Look == Plain })
	plain := slices.DeleteFunc(slices.Clone(bars), func(b Bar) bool { return b.Look != Plain })
	keep := max(mostBars-1-len(special), 0)
	rest := Bar{Name: moreName(len(plain) - keep)}
	for _, b := range plain[keep:] {
		rest.Bytes += b.Bytes
	}
	return append(append(plain[:keep:keep], rest), special...)
}

func twoBars(runs []Run, o Options) (*Chart, error) {
	groups := runs[0].Summary.Categories
	if len(groups) < 2 {
		return nil, errors.New(
			"it needs two sets of rules, such as --group layer=mxnet-layers --group data=mxnet-data-structures")
	}
	c := &Chart{Title: "GPU memory at the peak", Note: noteOf(runs[0])}
	for i := range groups[:2] {
		p := barsOf(&groups[i])
		p.Bars = slices.DeleteFunc(p.Bars, func(b Bar) bool { return b.Bytes <= 0 })
		if len(p.Bars) == 0 {
			return nil, errNothing
		}
		p.Bars = joinTail(joinSmall(p.Bars, p.Total, o.MinShare))
		c.Stacks = append(c.Stacks, p)
	}
	return c, nil
}

func overlay(runs []Run, o Options) (*Chart, error) {
	c := &Chart{Title: "GPU memory over time", XLabel: "time since the start", Time: true}
	var notes []string
	if o.Align {
		c.XLabel = "time since the first allocation"
	}
	if o.Events {
		c.XLabel, c.Time = "allocations and frees", false
	}
	if o.Baseline {
		notes = append(notes, "less what each run held at first")
	}
	level := ""
	for _, run := range runs { // one level for all: the framework's only if every run has it
		if len(run.Summary.Heights) == 0 {
			return nil, fmt.Errorf("%s: %w", run.Name, errNothing)
		}
		if first := run.Summary.Heights[0].Level; level == "" || first == report.LevelDriver {
			level = first
		}
	}
	for _, run := range runs {
		i := slices.IndexFunc(run.Summary.Heights, func(h report.Heights) bool { return h.Level == level })
		if i < 0 {
			return nil, fmt.Errorf("%s: it has no %s, unlike the others", run.Name, levelName(level))
		}
		s := heightSeries(run.Name+", peak "+report.SizeText(levelOf(run.Summary, level).PeakBytes),
			run.Summary.Heights[i], run.Summary.EndNS())
		s, err := placed(s, run, level, o)
		if err != nil {
			return nil, err
		}
		c.Series = append(c.Series, s)
	}
	if !o.Events {
		c.cropAll()
	}
	c.Note = strings.Join(append([]string{levelName(level)}, notes...), ", ")
	return c, nil
}
