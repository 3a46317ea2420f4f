package phrase

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// WriteIterations sums the iterations up: how many, how high, and whether they leave more and more behind.
func WriteIterations(p *layout.Page, t *report.Training) {
	ended := EndedIterations(t)
	switch {
	case t.IterationsBy == report.IterationsByNothing:
		p.Field("iterations", "none detected; call memtrace.step() in the training loop")
		return
	case len(ended) == 0:
		p.Field("iterations", "the first one did not end, by "+visible.Text(t.Iterated))
		return
	}
	p.Field("iterations", fmt.Sprintf("%s, ended by %s", layout.Count(uint64(len(ended))+t.LeftOut),
		visible.Text(t.Iterated)))
	if t.LeftOut > 0 {
		p.Styled(layout.Alarm, "", fmt.Sprintf("the last %s are not looked at one by one", layout.Count(t.LeftOut)))
	}
	p.Field("peaks", peakWords(t, ended))
	writeGrowthLine(p, t)
}

// EndedIterations are the iterations of the training loop that ended, without what was before the first.
func EndedIterations(t *report.Training) []report.Iteration {
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
	text := layout.Bytes(first)
	if len(peaks) > 1 {
		slices.Sort(peaks)
		text = fmt.Sprintf("first %s, median %s, last %s", layout.Bytes(first), layout.Bytes(peaks[len(peaks)/2]),
			layout.Bytes(last))
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
	return fmt.Sprintf("%s; highest %s %s, in %s", text, layout.Bytes(highest.Peak.Bytes), where,
		visible.Text(highest.Peak.Phase))
}

// writeGrowthLine says whether what iterations leave behind grows: a leak's only early sign.
func writeGrowthLine(p *layout.Page, t *report.Training) {
	ended := EndedIterations(t)
	kept := layout.Bytes(layout.Sum(ended[len(ended)-1].End))
	switch g := t.Growth(); g.Kind {
	case report.GrowthUnknown:
		p.Field("kept", kept+" at the end of the last; too few iterations to tell whether it grows")
	case report.GrowthNone:
		p.Field("kept", kept+" at the end of the last; it does not grow steadily")
	default:
		from, to := &t.Iterations[g.From], &t.Iterations[g.To]
		p.Styled(layout.Alarm, "kept",
			fmt.Sprintf("GROWS by %s per iteration, from %s after iteration %d to %s after iteration %d: %s",
				layout.Bytes(uint64(g.PerIteration())), layout.Bytes(layout.Sum(from.End)), from.Number,
				layout.Bytes(layout.Sum(to.End)), to.Number, growthWords(t, g)))
	}
}

// growthWords lists the categories that grew, most first.
func growthWords(t *report.Training, g report.Growth) string {
	grown := make([]uint64, len(g.ByCategory))
	for i, bytes := range g.ByCategory {
		grown[i] = uint64(max(bytes, 0))
	}
	var parts []string
	for _, i := range layout.Heaviest(grown) {
		parts = append(parts, visible.Text(t.Categories[i])+" "+layout.SignedBytes(g.ByCategory[i]))
	}
	return strings.Join(parts, ", ")
}
