package render

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/analyzer/rules"
)

// trains reports whether a run shows signs of training, or of a model at all: other programs' reports keep silent about
// it.
func trains(t *report.Training) bool {
	return t != nil && (t.IterationsBy != report.IterationsByNothing && len(t.Iterations) > 0 || len(t.Parameters) > 0 || t.Modules != nil)
}

// training is the report's own part about it: what the memory was for at the peak, and how iterations went.
func (p *page) training(s *report.Summary) {
	if !trains(s.Training) || s.Asked {
		return
	}
	t := s.Training
	if t.Highest >= 0 && sorted(t) {
		p.categoriesAtPeak(s, t)
	}
	p.title("Iterations")
	p.gap()
	p.iterationLines(t)
	p.gap()
}

// sorted reports whether the rules could tell anything about the peak: in programs that no framework runs they often
// cannot.
func sorted(t *report.Training) bool {
	for i, bytes := range t.Iterations[t.Highest].Peak.Held {
		if bytes > 0 && t.Categories[i] != rules.Others {
			return true
		}
	}
	return false
}

// categoriesAtPeak prints the categories at the highest moment of the level, which is that of its highest iteration.
func (p *page) categoriesAtPeak(s *report.Summary, t *report.Training) {
	highest := &t.Iterations[t.Highest]
	end := t.Iterations[len(t.Iterations)-1].End
	p.title(fmt.Sprintf("What the memory of %s was for at its peak, %s (rules %s)", levelName(s, t), moment(highest.Peak.TimeNS), clean(t.Rules)))
	p.gap()
	order := heaviest(highest.Peak.Held)
	order = slices.DeleteFunc(order, func(i int) bool { return t.Categories[i] == rules.Others })
	if others := slices.Index(t.Categories, rules.Others); others >= 0 && highest.Peak.Held[others] > 0 {
		order = append(order, others)
	}
	values := make([]uint64, len(order))
	var largest uint64
	for row, i := range order {
		values[row] = highest.Peak.Held[i]
		largest = max(largest, values[row])
	}
	shares := tenths(values)
	var rows [][]cell
	for row, i := range order {
		name := clean(t.Categories[i])
		if t.Categories[i] == rules.Others {
			name += " (no rule matches)"
		}
		rows = append(rows, []cell{{name, plain}, {Bytes(values[row]), strong}, {percent(shares[row]), plain}, {bar(values[row], largest, barWidth, p.o.ASCII), blocks}, {Bytes(end[i]), plain}})
	}
	p.table([]column{{title: "category"}, {title: "bytes", right: true}, {title: "share", right: true}, {optional: 2}, {title: "at end", right: true, optional: 1}}, rows)
	p.gap()
}

// levelName is what to call the level that training speaks of.
func levelName(s *report.Summary, t *report.Training) string {
	if t.Level == report.LevelFramework {
		return frameworkName(s)
	}
	return "the driver"
}

// iterationLines sums the iterations up: how many, how high, and whether they leave more and more behind.
func (p *page) iterationLines(t *report.Training) {
	ended := endedIterations(t)
	switch {
	case t.IterationsBy == report.IterationsByNothing:
		p.field("iterations", "none detected; call memtrace.step() in the training loop")
		return
	case len(ended) == 0:
		p.field("iterations", "the first one did not end, by "+clean(t.Iterated))
		return
	}
	p.field("iterations", fmt.Sprintf("%s, ended by %s", Count(uint64(len(ended))+t.LeftOut), clean(t.Iterated)))
	if t.LeftOut > 0 {
		p.styled(alarm, "", fmt.Sprintf("the last %s are not looked at one by one", Count(t.LeftOut)))
	}
	p.field("peaks", peakWords(t, ended))
	p.growthLine(t)
}

func endedIterations(t *report.Training) []report.Iteration {
	n := len(t.Iterations)
	for n > 0 && !t.Iterations[n-1].Ended {
		n--
	}
	if n > 0 && t.IsBefore(0) {
		return t.Iterations[1:n]
	}
	return t.Iterations[:n]
}

func peakWords(t *report.Training, ended []report.Iteration) string {
	peaks := make([]uint64, len(ended))
	for i := range ended {
		peaks[i] = ended[i].Peak.Bytes
	}
	first, last := peaks[0], peaks[len(peaks)-1]
	text := Bytes(first)
	if len(peaks) > 1 {
		slices.Sort(peaks)
		text = fmt.Sprintf("first %s, median %s, last %s", Bytes(first), Bytes(peaks[len(peaks)/2]), Bytes(last))
	}
	if t.Highest < 0 {
		return text
	}
	highest := &t.Iterations[t.Highest]
	where := fmt.Sprintf("in iteration %d", highest.Number)
	switch {
	case t.IsBefore(t.Highest):
		where = "before these"
	case !highest.Ended:
		where = "after the last iteration"
	}
	return fmt.Sprintf("%s; highest %s %s, in %s", text, Bytes(highest.Peak.Bytes), where, clean(highest.Peak.Phase))
}

// growthLine says whether what iterations leave behind grows: a leak's only early sign.
func (p *page) growthLine(t *report.Training) {
	ended := endedIterations(t)
	kept := Bytes(sumOf(ended[len(ended)-1].End))
	switch g := t.Growth(); g.Kind {
	case report.GrowthUnknown:
		p.field("kept", kept+" at the end of the last; too few iterations to tell whether it grows")
	case report.GrowthNone:
		p.field("kept", kept+" at the end of the last; it does not grow steadily")
	default:
		from, to := &t.Iterations[g.From], &t.Iterations[g.To]
		p.styled(alarm, "kept", fmt.Sprintf("GROWS by %s per iteration, from %s after iteration %d to %s after iteration %d: %s",
			Bytes(uint64(g.PerIteration())), Bytes(sumOf(from.End)), from.Number, Bytes(sumOf(to.End)), to.Number, growthWords(t, g)))
	}
}

// growthWords lists the categories that grew, most first.
func growthWords(t *report.Training, g report.Growth) string {
	grown := make([]uint64, len(g.ByCategory))
	for i, bytes := range g.ByCategory {
		grown[i] = uint64(max(bytes, 0))
	}
	var parts []string
	for _, i := range heaviest(grown) {
		parts = append(parts, clean(t.Categories[i])+" "+SignedBytes(g.ByCategory[i]))
	}
	return strings.Join(parts, ", ")
}
