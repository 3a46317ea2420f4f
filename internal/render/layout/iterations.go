package layout

import (
	"fmt"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// WriteIterations summarizes the iterations: their number, their peaks, and whether the memory left after them grows.
func WriteIterations(p *Page, s *report.Summary) {
	t := s.Training
	ended := EndedIterations(t)
	switch {
	case t.IterationsBy == report.IterationsByNothing:
		p.Field("iterations", "none detected; call memtrace.step() in the training loop")
		return
	case len(ended) == 0:
		p.Field("iterations", "the first one did not end, by "+sanitize.Text(t.Iterated))
		return
	}
	p.Field("iterations", fmt.Sprintf("%s, ended by %s", Count(uint64(len(ended))+t.LeftOut),
		sanitize.Text(t.Iterated)))
	if t.LeftOut > 0 {
		p.Styled(Alarm, "", fmt.Sprintf("%s of them are not looked at one by one", Count(t.LeftOut)))
	}
	p.Field("peaks", peakWords(t, ended))
	writeGrowthLine(p, s)
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
	text := Bytes(first)
	if len(peaks) > 1 {
		text = fmt.Sprintf("first %s, median %s, last %s", Bytes(first), Bytes(report.Median(peaks)), Bytes(last))
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
	return fmt.Sprintf("%s; highest %s %s, in %s", text, Bytes(highest.Peak.Bytes), where,
		sanitize.Text(highest.Peak.Phase))
}

// writeGrowthLine prints what iterations leave allocated, and whether the memory is judged to grow.
func writeGrowthLine(p *Page, s *report.Summary) {
	ended, g := EndedIterations(s.Training), s.Trend
	kept := Bytes(Sum(ended[len(ended)-1].End)) + " at the end of the last"
	switch {
	case g == nil || g.Level != s.Training.Level || g.Kind == report.GrowthUnknown || len(ended) < 2:
		p.Field("kept", kept)
	case g.FloorBytes > 0:
		p.Field("kept", kept+"; it rises"+growthBy(g)+", "+Bytes(g.Bytes)+" in all")
	case g.Kind == report.GrowthNone:
		p.Field("kept", kept+"; it does not grow steadily")
	default:
		each := ""
		if g.BytesPerIteration > 0 {
			each = " by " + Bytes(g.BytesPerIteration) + " per iteration"
		}
		first := slices.IndexFunc(ended, func(i report.Iteration) bool { return i.EndNS >= g.FromTimeNS })
		p.Styled(Alarm, "kept", fmt.Sprintf("%s; it GROWS%s: %s", kept, each,
			growthWords(s.Training, &ended[max(first, 0)], &ended[len(ended)-1])))
	}
}

// growthWords lists the categories that grew from one iteration to another, most first.
func growthWords(t *report.Training, from, to *report.Iteration) string {
	grown := make([]uint64, min(len(from.End), len(to.End)))
	for i := range grown {
		grown[i] = to.End[i] - min(from.End[i], to.End[i])
	}
	var parts []string
	for _, i := range Heaviest(grown) {
		parts = append(parts, sanitize.Text(t.Categories[i])+" +"+Bytes(grown[i]))
	}
	return strings.Join(parts, ", ")
}
