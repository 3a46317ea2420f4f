package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/render/oomtext"
	"memtrace/internal/sanitize"
)

// Rows of the tables on the first screen. They are fewer where the text would be longer than briefLines, but not fewer
// than briefRows; the table by category has more while there is room.
const (
	briefLines      = 40
	briefRows       = 2
	briefOwners     = 7
	briefCategories = 4
	briefExtra      = 12 // categories beyond these
	briefAdvice     = 2
	briefModules    = 3
	briefCallers    = 5 // of the place that holds most
	briefThrough    = 4 // lines of a library, below the modules
)

// screen is a page that fits on one screen.
type screen struct {
	*layout.Page
	trimmed   int      // rows that its tables have less than they may have; below 0: categories beyond these
	sentences []string // of the verdict
}

// firstScreen writes brief with as many rows as fit.
func firstScreen(w io.Writer, s *report.Summary, o layout.Options) error {
	sentences := Verdict(s)
	for trimmed := -briefExtra; ; trimmed++ {
		var text bytes.Buffer
		p := &screen{layout.NewPage(&text, o), trimmed, sentences}
		p.brief(s)
		if p.Err() != nil {
			return p.Err()
		}
		if bytes.Count(text.Bytes(), []byte("\n")) <= briefLines || trimmed == briefOwners-briefRows {
			_, err := w.Write(text.Bytes())
			return err
		}
	}
}

// rows is how many rows a table of the first screen has, unless the number was given.
func (p *screen) rows(limit int) int {
	return p.Fewer(max(limit-max(p.trimmed, 0), briefRows))
}

// categoryRows is rows for the table by category.
func (p *screen) categoryRows(limit int) int {
	return p.Fewer(max(limit-p.trimmed, briefRows))
}

// ownerRows is rows for places. On a full screen, those that hold less than a thousandth leave their room to the
// categories.
func (p *screen) ownerRows(limit int, list []owner) int {
	whole, large := uint64(0), 0
	for i := range list {
		whole += list[i].bytes
	}
	for i := range list {
		if list[i].bytes >= whole/1000 {
			large++
		}
	}
	if p.trimmed == -briefExtra || p.Rows != 0 {
		large = len(list)
	}
	return min(p.rows(limit), max(large, briefRows))
}

// brief is the first screen: the answer, what it rests on, and what to type next.
func (p *screen) brief(s *report.Summary) {
	p.verdict(s)
	p.shortHeading(s)
	if fatalOOM(s) == nil { // otherwise the device was full
		writePeakTable(p.Page, s)
	}
	p.shortTables(s)
	p.shortWindow(s)
	p.shortIterations(s)
	p.shortTotals(s)
	p.shortNotes(s)
	p.shortNext(s)
}

// verdict prints the sentences of Verdict as one paragraph.
func (p *screen) verdict(s *report.Summary) {
	name := "memtrace report"
	if p.Path != "" {
		name += "  " + sanitize.Text(p.Path)
	}
	p.Title(name)
	p.Gap()
	style := layout.Strong
	if s.OOM.Count > 0 || s.Bounds != nil {
		style = layout.Alarm
	}
	for i, text := range p.sentences {
		for _, part := range layout.Wrap(text, p.Columns()-2) {
			p.Line("  %s", p.Paint(style, part))
		}
		if i == 0 {
			style = layout.Plain
		}
	}
	p.Gap()
}

// shortHeading describes the process, the device, and whether the trace is complete, and draws memory over time.
func (p *screen) shortHeading(s *report.Summary) {
	for _, fact := range Facts(s) {
		switch {
		case fact.Alarm:
			p.Styled(layout.Alarm, fact.Name, fact.Value)
		case fact.Long:
			p.Clipped(fact.Name, fact.Value)
		default:
			p.Field(fact.Name, fact.Value)
		}
	}
	if fatalOOM(s) == nil && !ofSnapshot(s) {
		p.overTime(s)
	}
	p.Gap()
}

// shortTables are the memory by category, and by the code that allocated it.
func (p *screen) shortTables(s *report.Summary) {
	if reported := fatalOOM(s); reported != nil {
		p.shortOOM(s, reported)
		return
	}
	if t := s.Training; trains(t) && t.Highest >= 0 && sorted(t) {
		peak := &t.Iterations[t.Highest].Peak
		title := "What it was for at the peak"
		if ofSnapshot(s) {
			title = "What it was for"
		}
		p.shortCategories(title, t, peak.Held, peak.Bytes, briefCategories)
	}
	for _, by := range s.By {
		if l := s.Ledger("module"); by == "inner" && l != nil && modulesKnown(s) {
			p.shortModules(s, l, s.Main().PeakBytes)
			p.shortLedger(s, s.Ledger(by), s.Main().PeakBytes, briefThrough)
			continue
		}
		p.shortLedger(s, s.Ledger(by), s.Main().PeakBytes, briefOwners)
	}
	p.shortCallers(s.Division, s.Main().PeakBytes)
}

// shortOOM prints what filled the device when memory ran out, and advice.
func (p *screen) shortOOM(s *report.Summary, e *report.OOMEvent) {
	var rows []owner
	for _, c := range e.Categories {
		rows = append(rows, owner{name: sanitize.Text(layout.CategoryWord(c.Category)), bytes: c.Bytes,
			style: layout.Blocks})
	}
	// uncategorized memory is sorted by size, too: no hidden row is larger than one that is shown
	slices.SortStableFunc(rows, func(a, b owner) int { return cmp.Compare(b.bytes, a.bytes) })
	if len(rows) > 0 && trains(s.Training) {
		rows = coverOwners("category", rows, p.categoryRows(briefCategories-1), 0)
		p.shortTable("What it was for", rows, e.UsedBytes, nil)
	}
	if e.DrivenByLibrary() {
		if l := e.ThroughLedger("module"); l != nil && len(l.Rows) > 1 {
			p.shortModules(s, l, e.UsedBytes)
		}
		p.shortLedger(s, e.ThroughLedger("inner"), e.UsedBytes, briefThrough)
	} else if l := oomtext.BestLedger(e); l != nil && len(l.Rows) > 0 {
		var owners []owner
		for _, r := range l.Rows {
			owners = append(owners, owner{name: oomtext.OwnerName(&r, layout.Framework(s.Versions)), bytes: r.Bytes,
				lower: r.BytesLower, style: oomtext.OwnerStyle(r.Owner)})
		}
		p.shortTable("Who filled "+layout.DeviceName(e.Device)+", by "+l.By,
			coverBlocks(l.By, owners, p.rows(briefOwners-2)), e.UsedBytes, s.Bounds)
		p.Legend()
		p.Gap()
		p.shortCallers(e.Division, e.UsedBytes)
	}
	p.shortAdvice(e)
}

// shortCategories prints the memory by category at one moment.
func (p *screen) shortCategories(title string, t *report.Training, held []uint64, whole uint64, limit int) {
	var rows []owner
	for _, i := range layout.Heaviest(held) {
		row := owner{name: sanitize.Text(layout.CategoryWord(t.Categories[i])), bytes: held[i], style: layout.Blocks}
		rows = append(rows, row)
	}
	p.shortTable(title, coverOwners("category", rows, p.categoryRows(limit), 0), whole, nil)
}

// shortLedger prints the memory by the code that allocated it.
func (p *screen) shortLedger(s *report.Summary, l *report.Ledger, whole uint64, limit int) {
	if l == nil || len(l.Rows) == 0 {
		return
	}
	owners := ledgerOwners(p.Page, s, l, func(list []owner) []owner {
		return coverOwners(l.By, list, p.ownerRows(limit, list), 0)
	})
	title := "Where it was allocated, by " + l.By
	if l.By == "inner" {
		title = "By innermost line outside of " + layout.Framework(s.Versions)
	}
	p.shortTable(title, owners, whole, s.Bounds)
	p.Legend()
	p.Gap()
}

// shortModules divides the blocks by module, repeated modules joined, no deeper than the module that the first sentence
// names.
func (p *screen) shortModules(s *report.Summary, l *report.Ledger, whole uint64) {
	p.shortTable("By module", peakModules(s, l, p.rows(briefModules), p.Each), whole, nil)
}

// peakModules are the rows of a ledger by module.
func peakModules(s *report.Summary, l *report.Ledger, limit int, each func(int, uint64, uint64) string) []owner {
	var rows []owner
	for _, m := range l.RepeatedModules() {
		rows = append(rows, owner{name: sanitize.Text(m.Title), each: each(m.Count, m.Smallest, m.Largest),
			bytes: m.Bytes, style: layout.Blocks})
	}
	return coverOwners("module", rows, limit, moduleDepth(s))
}

// shortTable prints rows without titles of columns, which are self-explanatory. Shares are of the figure used in the
// sentences above; see sharesOf.
func (p *screen) shortTable(title string, owners []owner, whole uint64, b *report.Bounds) {
	shares, largest := sharesOf(owners, whole)
	var rows [][]layout.Cell
	each := make([]string, len(owners))
	for i, o := range owners {
		rows = append(rows, []layout.Cell{{Text: o.name}, {Text: p.Marked(o.lower, o.bytes, b), Style: layout.Strong},
			{Text: shares[i]}, {Text: layout.Bar(o.bytes, largest, layout.BarWidth, p.ASCII), Style: o.style}})
		each[i] = o.each
	}
	columns, rows := layout.EachColumn([]layout.Column{{Title: title}, {Title: "bytes", Right: true},
		{Title: "share", Right: true}, {Optional: 1}}, rows, each)
	p.Table(columns, rows)
	p.Gap()
}

// fatalOOM is the event that ended the run, or nil.
func fatalOOM(s *report.Summary) *report.OOMEvent {
	if s.OOM.Count == 0 || len(s.OOM.Events) == 0 {
		return nil
	}
	if e := &s.OOM.Events[s.DetailedOOM()]; e.Detailed {
		return e
	}
	return nil
}

func (p *screen) shortAdvice(e *report.OOMEvent) {
	if len(e.Advice) == 0 {
		return
	}
	p.Title("What to try")
	for _, a := range e.Advice[:min(briefAdvice, len(e.Advice))] {
		p.Item(sanitize.Text(a.Text))
	}
	p.Gap()
}

// shortIterations sums the iterations of a training program up.
func (p *screen) shortIterations(s *report.Summary) {
	t := s.Training
	if !trains(t) || t.IterationsBy == report.IterationsByNothing {
		return
	}
	ended := layout.EndedIterations(t)
	if len(ended) == 0 {
		p.Field("iterations", unfinished(s.Window, "the first one did not finish"))
		p.Gap()
		return
	}
	first, last := &ended[0], &ended[len(ended)-1]
	count := uint64(len(ended)) + t.LeftOut
	if t.IterationsBy == report.IterationsByStep && len(ended) < len(t.Iterations) { // no step ends the last one
		count++
	}
	text := fmt.Sprintf("%s (%s)", layout.Count(count), iteratedWords(t))
	held := layout.Bytes(layout.Sum(last.End))
	switch {
	case len(ended) == 1:
		text += "; " + held + " held after it"
	case t.LeftOut > 0: // there may be later ones
		text += fmt.Sprintf("; peak %s first, %s in iteration %d; %s held after that", layout.Bytes(first.Peak.Bytes),
			layout.Bytes(last.Peak.Bytes), last.Number, held)
	default:
		text += fmt.Sprintf("; peak %s first, %s last; %s held after it", layout.Bytes(first.Peak.Bytes),
			layout.Bytes(last.Peak.Bytes), held)
	}
	p.Field("iterations", text)
	p.Gap()
}

// shortTotals names the accounts other than device memory that are significant.
func (p *screen) shortTotals(s *report.Summary) {
	var parts []string
	for _, n := range layout.Accounts() {
		l := s.Other[n.Key]
		if l.Empty() || n.Key == "address" || l.PeakBytes < s.Main().PeakBytes/100 {
			continue
		}
		parts = append(parts, n.Name+" "+layout.Range(l.PeakBytesLower, l.PeakBytes, s.Bounds))
	}
	if len(parts) > 0 {
		peaks := " (separate peaks)"
		if len(parts) == 1 {
			peaks = " (separate peak)"
		}
		p.Field("also", strings.Join(parts, ", ")+peaks)
		p.Gap()
	}
}

// iteratedWords describes how iterations were detected.
func iteratedWords(t *report.Training) string {
	if t.IterationsBy == report.IterationsByPeriod {
		return "inferred from a recurring allocation"
	}
	return sanitize.Text(t.Iterated)
}

// shortNotes prints the notes where figures may be wrong, and counts them elsewhere.
func (p *screen) shortNotes(s *report.Summary) {
	notes := s.Notes
	if s.Health.Complete && len(s.Health.Unseen) == 0 {
		notes = nil
	}
	for _, note := range notes {
		p.Item(sanitize.Text(note))
	}
	if len(notes) > 0 {
		p.Gap()
	}
}

// shortNext prints the commands that show the rest.
func (p *screen) shortNext(s *report.Summary) { writeNextCommands(p.Page, nextCommands(s, p.Options)) }

func writeNextCommands(p *layout.Page, list []nextCommand) {
	label := "Next:"
	for _, next := range list {
		text := p.Paint(layout.Strong, label) + " " + next.command
		if room := p.Columns() - len(label) - 1 - layout.Width(next.command) - 2; room >= layout.Width(next.shows)+2 {
			text += "  " + p.Paint(layout.Faint, "# "+next.shows)
		}
		p.Line("%s", text)
		label = "     "
	}
}
