package render

import (
	"slices"
	"strings"

	"memtrace/analyzer"
)

// Rows of the tables on the first screen, which is one of 40 lines.
const (
	briefOwners     = 7
	briefCategories = 5
	briefAdvice     = 2
)

// brief is the first screen: the answer, what it rests on, and what to type next.
func (p *page) brief(s *analyzer.Summary) {
	p.verdict(s)
	p.shortHeading(s)
	p.peaks(s)
	rows := p.o.Rows
	p.shortTables(s)
	p.o.Rows = rows
	p.shortIterations(s)
	p.shortNotes(s)
	p.shortNext(s)
}

// verdict prints the sentences of Verdict as one paragraph.
func (p *page) verdict(s *analyzer.Summary) {
	name := "memtrace report"
	if p.o.Path != "" {
		name += "  " + clean(p.o.Path)
	}
	p.title(name)
	p.gap()
	style := strong
	if s.OOM.Count > 0 || s.Bounds != nil {
		style = alarm
	}
	for i, text := range Verdict(s) {
		for _, part := range wrap(text, p.o.width()-2) {
			p.line("  %s", p.o.paint(style, part))
		}
		if i == 0 {
			style = plain
		}
	}
	p.gap()
}

// shortHeading says who ran, on what, and whether the trace is whole.
func (p *page) shortHeading(s *analyzer.Summary) {
	p.oneLine("command", orUnknown(command(s.Process)))
	p.field("run", run(s.Process)+"; "+process(s.Process))
	if text := software(s.Versions); text != "" {
		p.oneLine("software", text)
	}
	for _, d := range s.Devices {
		if !d.Driver.Empty() || !d.Framework.Empty() {
			p.oneLine(deviceName(d.Index), device(d, s.NullGPU))
		}
	}
	style := plain
	if !s.Health.Complete || len(s.Health.Unseen) > 0 {
		style = alarm
	}
	p.styled(style, "trace", health(s))
	if len(s.Filter) > 0 {
		p.field("only", clean(strings.Join(s.Filter, ", ")))
	}
	p.gap()
}

// oneLine is field for text that is only to be recognised.
func (p *page) oneLine(name, text string) {
	p.field(name, clip(text, p.o.width()-13, p.o.ASCII))
}

// shortTables are what the memory was for, and where it was asked for.
func (p *page) shortTables(s *analyzer.Summary) {
	if told := oomToTell(s); told != nil {
		p.o.Rows = p.o.fewer(briefOwners)
		framework := frameworkPhrase(s.Versions)
		if l := bestLedger(told); l != nil && len(l.Rows) > 0 {
			p.oomLedger(told, l, framework, p.o.rows())
		}
		p.shortAdvice(told)
		return
	}
	if t := s.Training; trains(t) && t.Highest >= 0 && sorted(t) {
		p.o.Rows = p.o.fewer(briefCategories)
		p.categoriesAtPeak(s, t)
	}
	p.o.Rows = p.o.fewer(briefOwners)
	for _, by := range s.By {
		p.ledger(s, by)
	}
}

// fewer is how many rows a table of the first screen has, unless the number was asked for.
func (o Options) fewer(rows int) int {
	if o.Rows != 0 {
		return o.Rows
	}
	return rows
}

// oomToTell is the event that ended the run, or nil.
func oomToTell(s *analyzer.Summary) *analyzer.OOMEvent {
	if s.OOM.Count == 0 {
		return nil
	}
	if e := &s.OOM.Events[toldOOM(s)]; e.Detailed {
		return e
	}
	return nil
}

func (p *page) shortAdvice(e *analyzer.OOMEvent) {
	if len(e.Advice) == 0 {
		return
	}
	p.title("What to try")
	p.gap()
	for _, a := range e.Advice[:min(briefAdvice, len(e.Advice))] {
		p.item(clean(a.Text))
	}
	p.gap()
}

// shortIterations sums the iterations of a training program up.
func (p *page) shortIterations(s *analyzer.Summary) {
	if t := s.Training; trains(t) && t.IterationsBy != analyzer.IterationsByNothing {
		p.iterationLines(t)
		p.gap()
	}
}

// shortNotes prints the notes where figures may be wrong, and counts them elsewhere.
func (p *page) shortNotes(s *analyzer.Summary) {
	notes := s.Notes
	if s.Health.Complete && len(s.Health.Unseen) == 0 {
		notes = nil
	}
	for _, note := range notes {
		p.item(clean(note))
	}
	if len(notes) > 0 {
		p.gap()
	}
}

// shortNext proposes the commands that show the rest.
func (p *page) shortNext(s *analyzer.Summary) {
	if nothingSeen(s) && len(s.Notes) == 0 {
		return
	}
	path := p.o.Path
	if path == "" {
		path = "FILE"
	}
	path = shellWord(clean(path))
	label := "Next:"
	say := func(command, shows string) {
		command += " " + path
		text := p.o.paint(strong, label) + " " + command
		if room := p.o.width() - len(label) - 1 - widthOf(command) - 2; room >= widthOf(shows)+2 {
			text += "  " + p.o.paint(faint, "# "+shows)
		}
		p.line("%s", text)
		label = "     "
	}
	say("memtrace report --details", "call stacks, device ledger, lifetimes, notes")
	switch {
	case s.OOM.Count > 0:
		say("memtrace report --at oom", "every table at the moment memory ran out")
	case modulesKnown(s):
		say("memtrace report --view modules", "by layer of the model")
	case s.Sites != nil && worthShowing(s.Sites) && !slices.Contains(s.By, "site"):
		say("memtrace report --by site", "by line of the program")
	}
}
