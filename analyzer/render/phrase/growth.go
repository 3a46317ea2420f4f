package phrase

import (
	"fmt"
	"strings"

	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/report"
	"memtrace/internal/visible"
)

// Growth says by how much memory grows, since when, how fast and at which lines. The trend must be steady.
func Growth(t *report.Trend) string {
	text := fmt.Sprintf("Memory grows: %s since %s, %s: %s", layout.Bytes(t.Bytes), layout.Moment(t.FromTimeNS),
		rateWords(t.BytesPerSecond), growers(t))
	if full := fullWords(t); full != "" {
		text += "; " + full
	}
	return text + "."
}

// rateWords writes a rate in the unit of time in which people would watch it.
func rateWords(perSecond float64) string {
	switch {
	case perSecond >= 1<<20:
		return layout.Bytes(uint64(perSecond)) + "/s"
	case perSecond*60 >= 1<<10:
		return layout.Bytes(uint64(perSecond*60)) + "/min"
	}
	return layout.Bytes(uint64(perSecond*3600)) + "/h"
}

// growers names the places that grow, with their shares.
func growers(t *report.Trend) string {
	const shown = 2
	var parts []string
	for _, o := range t.Owners[:min(shown, len(t.Owners))] {
		part := visible.Text(o.Site)
		if len(t.Owners) > 1 {
			part += " " + layout.PercentOf(o.Bytes, t.Bytes)
		}
		parts = append(parts, part)
	}
	if more := len(t.Owners) - shown; more > 0 {
		parts = append(parts, layout.Plural(uint64(more), "more place", "more places"))
	}
	return strings.Join(parts, ", ")
}

// fullWords says when the device would be full, if that is within a month.
func fullWords(t *report.Trend) string {
	const month = 30 * 24 * 3600
	if t.FullInSeconds <= 0 || t.FullInSeconds > month {
		return ""
	}
	hours := t.FullInSeconds / 3600
	switch {
	case hours >= 48:
		return fmt.Sprintf("the device is full in about %.0f days", hours/24)
	case hours >= 2:
		return fmt.Sprintf("the device is full in about %.0f hours", hours)
	}
	return fmt.Sprintf("the device is full in about %s", layout.Plural(uint64(t.FullInSeconds/60)+1, "minute",
		"minutes"))
}
