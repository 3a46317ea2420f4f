package render

import (
	"fmt"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// writeAllocator prints the settings and events of PyTorch's allocator, and the queries of free memory.
func writeAllocator(p *layout.Page, s *report.Summary) {
	a := s.Allocator
	if a == nil {
		return
	}
	title := "PyTorch's allocator"
	if s.Framework.Empty() {
		title = "Free-memory queries"
	}
	p.Title(title)
	p.Gap()
	for _, f := range []struct{ name, text string }{
		{"settings", settingsText(a.Settings)},
		{"limit", fractionsText(a.Fractions)},
		{"streams", placesText(a)},
		{"waiting", waitingText(&a.Waiting)},
		{"emptied", emptyCacheText(&a.EmptyCache)},
		{"free?", queriesText(a.Asked)},
		{"lacks", strings.Join(cleanAll(a.NotRecorded), "; ")},
	} {
		if f.text != "" {
			p.Field(f.name, f.text)
		}
	}
	p.Gap()
}

func cleanAll(list []string) []string {
	cleaned := make([]string, len(list))
	for i, text := range list {
		cleaned[i] = sanitize.Text(text)
	}
	return cleaned
}

// few joins the first parts of a list and counts the others.
func few(parts []string) string {
	const shown = 4
	if more := len(parts) - shown; more > 0 {
		parts = append(parts[:shown:shown], fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "; ")
}

func settingsText(list []report.Setting) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, fmt.Sprintf("%s at %s", sanitize.Text(s.Text), layout.Moment(s.TimeNS)))
	}
	return few(parts)
}

func fractionsText(list []report.Fraction) string {
	var parts []string
	for _, f := range list {
		parts = append(parts, fmt.Sprintf("%.4g%% of %s from %s on", 100*f.Fraction, layout.DeviceName(f.Device),
			layout.Moment(f.TimeNS)))
	}
	return few(parts)
}

// placesText is empty for what every program does: one stream, no private pool.
func placesText(a *report.Allocator) string {
	if a.StreamCount <= 1 && a.PoolCount == 0 {
		return ""
	}
	text := "blocks for " + report.Count(uint64(a.StreamCount), "stream", "streams") + " (--by stream)"
	if a.PoolCount > 0 {
		text += ", from " + report.Count(uint64(a.PoolCount), "private pool", "private pools") + " (--by pool)"
	}
	return text
}

func waitingText(w *report.Waiting) string {
	if w.Blocks == 0 && w.Unknown == 0 {
		return ""
	}
	text := fmt.Sprintf("%s given back waited for other streams: at most %s at one time, %s at the peak",
		report.Count(w.Blocks, "block", "blocks"), layout.Bytes(w.Peak), layout.Bytes(w.AtPeak))
	if w.Live > 0 {
		text += ", " + layout.Bytes(w.Live) + " at the end"
	}
	if w.Unknown > 0 {
		text += fmt.Sprintf("; %s of blocks given back while a graph was captured",
			report.Count(w.Unknown, "wait", "waits"))
	}
	return text
}

func emptyCacheText(e *report.EmptyCache) string {
	if e.Count == 0 {
		return ""
	}
	text := fmt.Sprintf("%s of emptyCache, %s given back", report.Count(e.Count, "call", "calls"),
		layout.Bytes(e.GivenBack))
	if e.LargestBytes > 0 && e.Count > 1 {
		text += fmt.Sprintf("; the most, %s, at %s", layout.Bytes(e.LargestBytes), layout.Moment(e.LargestTimeNS))
	}
	if e.LargestBytes > 0 && e.Place != "" {
		text += " by " + sanitize.Text(e.Place)
	}
	return text
}

func queriesText(list []report.FreeQuestion) string {
	var parts []string
	for _, q := range list {
		who := q.Place
		if who == "" {
			who = q.Library
		}
		part := fmt.Sprintf("%s: %s of %s free on %s", sanitize.Text(who), layout.Bytes(q.FirstFree),
			layout.Bytes(q.Total), layout.DeviceName(q.Device))
		if q.Count > 1 {
			part += fmt.Sprintf(" (%s, last %s)", report.Count(q.Count, "time", "times"), layout.Bytes(q.LastFree))
		}
		parts = append(parts, part)
	}
	return few(parts)
}
