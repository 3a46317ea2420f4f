package render

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// iterationLines sums the iterations up: how many, how high, and whether they leave more and more behind.
func writeIterationLines(p *page, t *report.Training) {
	ended := endedIterations(t)
	switch {
	case t.IterationsBy == report.IterationsByNothing:
		p.field("iterations", "none detected; call memtrace.step() in the training loop")
		return
	case len(ended) == 0:
		p.field("iterations", "the first one did not end, by "+visible.Text(t.Iterated))
		return
	}
	p.field("iterations", fmt.Sprintf("%s, ended by %s", Count(uint64(len(ended))+t.LeftOut), visible.Text(t.Iterated)))
	if t.LeftOut > 0 {
		p.styled(alarm, "", fmt.Sprintf("the last %s are not looked at one by one", Count(t.LeftOut)))
	}
	p.field("peaks", peakWords(t, ended))
	writeGrowthLine(p, t)
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
	return fmt.Sprintf("%s; highest %s %s, in %s", text, Bytes(highest.Peak.Bytes), where, visible.Text(highest.Peak.Phase))
}

// growthLine says whether what iterations leave behind grows: a leak's only early sign.
func writeGrowthLine(p *page, t *report.Training) {
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
		parts = append(parts, visible.Text(t.Categories[i])+" "+SignedBytes(g.ByCategory[i]))
	}
	return strings.Join(parts, ", ")
}
