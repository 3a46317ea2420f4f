package render

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// timelineRows is how many intervals the text shows unless the number was given.
const timelineRows = 32

// noTimeline explains why there is no timeline.
func noTimeline(s *report.Summary) string {
	switch {
	case s.Timeline == nil:
		return "no timeline was requested"
	case len(s.Timeline.Levels) == 0:
		return "no memory was allocated"
	}
	return ""
}

// timelineDetail is the requested level of detail.
func timelineDetail(s *report.Summary, o layout.Options, otherwise int) *report.Timeline {
	switch {
	case o.Rows < 0:
		return s.Timeline
	case o.Rows > 0:
		return s.Timeline.AtMost(o.Rows)
	}
	return s.Timeline.AtMost(otherwise)
}

// heldRange are the intervals from the first to the last in which anything was held.
func heldRange(l *report.TimelineLevel) (first, last int) {
	held := func(b report.TimelineBin) bool { return b.PeakBytes > 0 }
	first = max(slices.IndexFunc(l.Bins, held), 0)
	for last = len(l.Bins) - 1; last > first && !held(l.Bins[last]); {
		last--
	}
	return first, last
}

// writeTimeline prints a row for each interval: its highest moment, and the largest owners then.
func writeTimeline(p *layout.Page, s *report.Summary) {
	t := timelineDetail(s, p.Options, timelineRows)
	l := &t.Levels[0]
	first, last := heldRange(l)
	name := "driver memory"
	if l.Level == report.LevelFramework {
		name = layout.Genitive(layout.FrameworkName(s.Versions)) + " blocks"
	}
	p.Title(fmt.Sprintf("%s over time, by %s: the highest moment of each %s", layout.UpperFirst(name), t.By,
		layout.Duration(t.WidthNS)))
	p.Gap()
	own := timelineColumns(p, t)
	titles := make([]string, len(own))
	for i := range own {
		titles[i] = sanitize.Text(cmp.Or(t.Keys[i].Label, t.Keys[i].Key))
	}
	columns := []layout.Column{{Title: "from"}, {Title: "peak", Right: true}, {}}
	short := columnNames(t.By, titles)
	for _, title := range short {
		columns = append(columns, layout.Column{Title: title, Right: true})
	}
	columns = append(columns, layout.Column{Title: "rest", Right: true}, layout.Column{Title: "idle", Right: true,
		Optional: 4}, layout.Column{Title: "driver", Right: true, Optional: 3},
		layout.Column{Title: "used", Right: true, Optional: 6}, layout.Column{Title: "in", Optional: 7},
		layout.Column{Title: "phases", Optional: 2}, layout.Column{Title: "steps", Optional: 1})
	var largest uint64
	for _, b := range l.Bins {
		largest = max(largest, b.PeakBytes)
	}
	driver, used := t.Sum(report.LineDriver), t.Sum(report.LineUsed)
	if p.Columns() < widthOfBars {
		largest = 0
	}
	var rows [][]layout.Cell
	for i := first; i <= last; i++ {
		rows = append(rows, timelineCells(t, i, len(own), largest, driver, used, p.ASCII))
	}
	p.Table(withoutBlank(columns, rows))
	p.Gap()
	writeTimelineNotes(p, s, t, titles, short, first, last)
}

// Columns of keys: as wide as bytes are, and as many as there is room for next to the others.
const (
	timelineKeyWidth = 10
	timelineBasic    = 48 // time, peak, rest, driver, steps
	timelineKeysMost = 5
	widthOfBars      = 100
	laneWidth        = 14
)

func timelineColumns(p *layout.Page, t *report.Timeline) []report.TimelineKey {
	room := p.Columns() - timelineBasic
	if len(t.Phases) > 0 {
		room -= laneCells + layout.TableGap
	}
	if p.Columns() >= widthOfBars {
		room -= layout.BarWidth/2 + layout.TableGap
	}
	n := 0 // keys of the first level
	for _, b := range t.Levels[0].Bins {
		if len(b.Held) > 0 {
			n = max(n, int(b.Held[len(b.Held)-1].Key)+1)
		}
	}
	return t.Keys[:min(n, max(min(room/(timelineKeyWidth+layout.TableGap), timelineKeysMost), 1))]
}

func timelineCells(t *report.Timeline, i, own int, largest uint64, driver, used []uint64, ascii bool) []layout.Cell {
	b := &t.Levels[0].Bins[i]
	row := []layout.Cell{{Text: layout.Moment(t.Begin(i))}, {Text: layout.Bytes(b.PeakBytes), Style: layout.Strong},
		{Text: layout.Bar(b.PeakBytes, largest, layout.BarWidth/2, ascii), Style: layout.Blocks}}
	held, rest := make([]uint64, own), uint64(0)
	for _, part := range b.Held {
		if int(part.Key) < own {
			held[part.Key] = part.Bytes
		} else {
			rest += part.Bytes
		}
	}
	for _, bytes := range append(held, rest) {
		row = append(row, layout.Cell{Text: bytesOrBlank(bytes)})
	}
	row = append(row, layout.Cell{Text: bytesOrBlank(b.Idle)}, layout.Cell{}, layout.Cell{},
		layout.Cell{Text: sanitize.Text(b.Phase)}, layout.Cell{Text: phaseCells(t.Lanes[i].Phases, t.End(i)-t.Begin(i)),
			Style: layout.Blocks}, layout.Cell{Text: layout.Clip(laneWords(&t.Lanes[i]), laneWidth, ascii)})
	at := len(row) - 5
	if t.Levels[0].Level != report.LevelDriver && driver != nil {
		row[at].Text = bytesOrBlank(driver[i])
	}
	if used != nil {
		row[at+1].Text = bytesOrBlank(used[i])
	}
	return row
}

// columnNames are titles that fit a column: categories have well-known short names, others numbers if they are too
// long.
func columnNames(by string, titles []string) []string {
	if by == "category" {
		return shortNames(titles)
	}
	names := slices.Clone(titles)
	for i, title := range titles {
		if layout.Width(title) > timelineKeyWidth {
			names[i] = fmt.Sprintf("(%d)", i+1)
		}
	}
	return names
}

func bytesOrBlank(n uint64) string {
	if n == 0 {
		return ""
	}
	return layout.Bytes(n)
}

// laneWords describes the events of an interval in a few characters.
func laneWords(l *report.TimelineLane) string {
	var parts []string
	if l.OOMs > 0 {
		parts = append(parts, "OOM")
	}
	switch {
	case l.Steps == 1:
		parts = append(parts, strconv.FormatUint(l.FirstStep, 10))
	case l.Steps > 1:
		parts = append(parts, fmt.Sprintf("%d-%d", l.FirstStep, l.LastStep))
	}
	if l.Epochs > 0 {
		parts = append(parts, fmt.Sprintf("epoch %d", l.LastEpoch))
	}
	for _, name := range l.MarkNames {
		parts = append(parts, sanitize.Text(name))
	}
	if more := l.Marks - uint64(len(l.MarkNames)); more > 0 {
		parts = append(parts, fmt.Sprintf("+%d", more))
	}
	return strings.Join(parts, " ")
}

// writeTimelineNotes explains the columns, and suggests a closer view of the highest interval.
func writeTimelineNotes(p *layout.Page, s *report.Summary, t *report.Timeline, titles, short []string, first,
	last int) {
	var parts []string
	for i, name := range short {
		if name != titles[i] {
			parts = append(parts, name+" "+titles[i])
		}
	}
	if parts != nil {
		p.Item("Columns: " + strings.Join(parts, ", ") + ".")
	}
	if words := phaseWordsOf(t, first, last); words != "" {
		p.Item(words)
	}
	if first > 0 {
		p.Item("Nothing was held before " + layout.Moment(t.Begin(first)) + ".")
	}
	if last < t.Bins()-1 {
		p.Item("Nothing was held from " + layout.Moment(t.Begin(last+1)) + " on.")
	}
	if t.Bins() < s.Timeline.Bins() {
		p.Item(fmt.Sprintf("%d stretches of %s are known: -n 0 shows all, --csv and --json write them.",
			s.Timeline.Bins(), layout.Duration(s.Timeline.WidthNS)))
	}
	highest := 0
	for i, b := range t.Levels[0].Bins {
		if b.PeakBytes > t.Levels[0].Bins[highest].PeakBytes {
			highest = i
		}
	}
	path := p.Path
	if path == "" {
		path = "FILE"
	}
	p.Gap()
	p.Line("%s memtrace report --view timeline --by %s --from %s --to %s %s", p.Paint(layout.Strong, "Next:"), t.By,
		exactSeconds(t.Begin(highest)), exactSeconds(t.End(highest)), layout.ShellWord(path))
}

// exactSeconds is a time in the form of flags.
func exactSeconds(ns int64) string { return layout.Seconds(ns) + "s" }

// timelineTable is a row for each interval of each level.
func timelineTable(s *report.Summary, o layout.Options, write layout.UnitWriter) iter.Seq[[]string] {
	t := timelineDetail(s, o, s.Timeline.Bins())
	header := []string{"level", "begin_seconds", "end_seconds", "peak_seconds", "peak_bytes", "idle_bytes", "phase",
		"steps", "first_step", "last_step", "epochs", "marks", "mark_names", "out_of_memory"}
	phases := phasesOf(t.Lanes)
	header = append(header, phaseColumns(phases)...)
	for _, l := range t.Lines {
		header = append(header, fmt.Sprintf("%s_device_%d", l.Name, l.Device))
	}
	fixed := len(header)
	for _, k := range t.Keys {
		header = append(header, sanitize.Text(cmp.Or(k.Label, k.Key)))
	}
	return func(yield func([]string) bool) {
		if !yield(header) {
			return
		}
		row := make([]string, len(header))
		for _, l := range t.Levels {
			for i := range l.Bins {
				b, lane := &l.Bins[i], &t.Lanes[i]
				copy(row, []string{l.Level, layout.Seconds(t.Begin(i)), layout.Seconds(t.End(i)),
					layout.Seconds(b.PeakNS), write(b.PeakBytes), write(b.Idle), b.Phase, layout.Number(lane.Steps),
					layout.Number(lane.FirstStep), layout.Number(lane.LastStep),
					layout.Number(lane.Epochs), layout.Number(lane.Marks),
					sanitize.Text(strings.Join(lane.MarkNames, ";")), layout.Number(lane.OOMs)})
				copy(row[fixed-len(t.Lines)-len(phases):], phaseSeconds(phases, lane.Phases))
				for n, line := range t.Lines {
					row[fixed-len(t.Lines)+n] = write(line.PeakBytes[i])
				}
				for k := range t.Keys {
					row[fixed+k] = write(0)
				}
				for _, part := range b.Held {
					row[fixed+int(part.Key)] = write(part.Bytes)
				}
				if !yield(row) {
					return
				}
			}
		}
	}
}
