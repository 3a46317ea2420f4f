package render

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// writeRemarks prints the lines under the tables: what each means in a sentence.
func writeRemarks(p *layout.Page, s *report.Summary) {
	if !s.Driver.Empty() || !s.Framework.Empty() {
		p.Field("at the end", endLine(s))
	}
	if text := lifetimeLine(s); text != "" {
		p.Field("lifetimes", text)
	}
	if text := objectsLine(s); text != "" {
		p.Field("objects", text)
	}
	// those of OOM events are printed there
	if n := s.Driver.FailedCount + s.Framework.FailedCount; n > s.OOM.RefusedCount {
		p.Field("refused", layout.Plural(n, "allocation was", "allocations were")+" refused")
	}
	if text := progressLine(s); text != "" {
		p.Field("progress", text)
	}
	if len(s.Notes) > 0 {
		p.Gap()
		p.Title("Notes")
		for _, note := range s.Notes {
			p.Item(sanitize.Text(note))
		}
	}
}

// endLine describes the live memory at the end of the trace.
func endLine(s *report.Summary) string {
	var parts []string
	if !s.Framework.Empty() {
		parts = append(parts, layout.FrameworkName(s.Versions)+" "+liveWords(s.Framework, s.Bounds))
	}
	if !s.Driver.Empty() {
		parts = append(parts, "driver "+liveWords(s.Driver, s.Bounds))
	}
	return strings.Join(parts, "; ")
}

func liveWords(l report.Level, b *report.Bounds) string {
	switch inexact := b != nil && !(b.RecordedIsUpper && *l.LiveBytesLower >= l.LiveBytes); {
	case inexact:
		return fmt.Sprintf("%s live, by the records in %s", layout.Range(l.LiveBytesLower, l.LiveBytes, b),
			layout.Plural(l.LiveCount(), "block", "blocks"))
	case l.LiveCount() == 0:
		return "nothing live"
	}
	return fmt.Sprintf("%s live in %s", layout.Bytes(l.LiveBytes), layout.Plural(l.LiveCount(), "block", "blocks"))
}

// lifetimeLine sums up the lives of the main level's blocks.
func lifetimeLine(s *report.Summary) string {
	h := s.Lifetimes[s.MainLevel()]
	if h.FreedCount == 0 {
		return ""
	}
	below := layout.Duration(int64(min(medianBelow(h), 1<<62)))
	text := fmt.Sprintf("%s blocks were freed, half of them within %s", layout.Count(h.FreedCount), below)
	if h.FreedCount == 1 {
		text = "1 block was freed, within " + below
	}
	if h.TemporaryCount == 0 {
		return text + "; none was temporary (freed by the next call of the same thread)"
	}
	return text + fmt.Sprintf("; %s temporary: freed by the next call of the same thread (%s)",
		layout.Plural(h.TemporaryCount, "was", "were"),
		layout.PercentOf(h.TemporaryCount, h.FreedCount))
}

// medianBelow returns the upper bound of the bucket that contains the median lifetime.
func medianBelow(h report.LifetimeHist) uint64 {
	var seen uint64
	for _, b := range h.Buckets {
		if seen += b.Count; 2*seen >= h.FreedCount {
			return b.BelowNS
		}
	}
	return 0
}

// progressLine sums up what the program announced about itself.
func progressLine(s *report.Summary) string {
	var parts []string
	if s.Epochs.Count > 0 {
		parts = append(parts, layout.Plural(s.Epochs.Count, "epoch", "epochs"))
	}
	if s.Steps.Count > 0 {
		parts = append(parts, layout.Plural(s.Steps.Count, "step", "steps"))
	}
	if len(s.Marks) > 0 {
		const shown = 5
		var names []string
		for _, m := range s.Marks[:min(shown, len(s.Marks))] {
			names = append(names, sanitize.Text(m.Name))
		}
		if more := len(s.Marks) - shown; more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		word := "marks "
		if len(s.Marks) == 1 {
			word = "mark "
		}
		parts = append(parts, word+strings.Join(names, ", "))
	}
	return strings.Join(parts, "; ")
}
