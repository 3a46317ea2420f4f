package layout

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/sanitize"
)

// Growth describes the rate of growth, its amount, and the lines. The judgement must be that memory grows; main is the
// level that the report puts first.
func Growth(t *report.Trend, main string) string {
	text := fmt.Sprintf("%s grows%s (%s since %s). %s.", grownMemory(t.Level, main), growthBy(t), Bytes(t.Bytes),
		Moment(t.FromTimeNS), growingPlaces(t))
	if full := fullWords(t.FullInSeconds); full != "" {
		text += " At this rate the device will be full in about " + full + "."
	}
	return text
}

// NoGrowth says that memory does not grow, and what rises all the same, by less than is called growth.
func NoGrowth(little []*report.Trend, main string) string {
	if len(little) == 0 {
		return "No growth detected."
	}
	t := little[0]
	return fmt.Sprintf("No growth of more than %s. Below that, %s rises%s (%s since %s). %s.", Bytes(t.FloorBytes),
		LowerFirst(grownMemory(t.Level, main)), growthBy(t), Bytes(t.Bytes), Moment(t.FromTimeNS), growingPlaces(t))
}

// growthBy are the rates of growth.
func growthBy(t *report.Trend) string {
	rates := make([]string, 0, 2)
	if t.BytesPerSecond > 0 && (t.BytesPerIteration == 0 || t.ToTimeNS-t.FromTimeNS >= int64(time.Second)) {
		rates = append(rates, RateWords(t.BytesPerSecond)) // for less than a second it is not known well enough
	}
	if t.BytesPerIteration > 0 {
		rates = append(rates, perIteration(t))
	}
	if len(rates) == 0 {
		return ""
	}
	return " by " + strings.Join(rates, ", ")
}

// grownMemory names a kind of memory at the beginning of a sentence.
func grownMemory(level, main string) string {
	switch {
	case level == main:
		return "Memory"
	case level == report.LevelDriver:
		return "Device memory outside the framework's allocator"
	}
	return map[string]string{"host": "Pinned host memory", "registered": "Registered host memory",
		"managed": "Managed memory"}[level]
}

// GrowthRate is how fast memory grows, in as few words as there are: in a time, else per iteration, else how much it
// grew.
func GrowthRate(t *report.Trend) string {
	switch {
	case t.BytesPerSecond > 0:
		return RateWords(t.BytesPerSecond)
	case t.BytesPerIteration > 0:
		return perIteration(t)
	}
	return Bytes(t.Bytes)
}

func perIteration(t *report.Trend) string { return Bytes(t.BytesPerIteration) + " per iteration" }

// RateWords formats a rate in a suitable unit of time.
func RateWords(perSecond float64) string {
	switch {
	case perSecond >= 1<<20:
		return Bytes(uint64(perSecond)) + "/s"
	case perSecond*60 >= 1<<10:
		return Bytes(uint64(perSecond*60)) + "/min"
	}
	return Bytes(uint64(perSecond*3600)) + "/h"
}

// growingPlaces names the places that grow, with their shares, and states if they are less than most of it.
func growingPlaces(t *report.Trend) string {
	const shown, whole = 2, 99
	share := func(bytes uint64) float64 { return 100 * float64(bytes) / float64(max(t.Bytes, 1)) }
	if len(t.Owners) > 0 && share(t.Owners[0].Bytes) >= whole {
		text, o := "It was allocated at ", &t.Owners[0]
		if o.Inner != "" {
			text += sanitize.Text(o.Inner) + ", called from "
		}
		return text + sanitize.Text(o.Site)
	}
	var parts []string
	for i, o := range t.Owners[:min(shown, len(t.Owners))] {
		format := "%s %.0f%%"
		if i == 0 {
			format = "%s holds %.0f%% of the growth"
		}
		parts = append(parts, fmt.Sprintf(format, sanitize.Text(o.Site), share(o.Bytes)))
	}
	if len(t.Owners) > shown {
		var more uint64
		for _, o := range t.Owners[shown:] {
			more += o.Bytes
		}
		if share(more) > 100-whole {
			parts = append(parts, fmt.Sprintf("%s %.0f%%", Plural(uint64(len(t.Owners)-shown), "more place",
				"more places"), share(more)))
		}
	}
	if other := share(t.Bytes - min(t.Owned(), t.Bytes)); other > 100-whole {
		parts = append(parts, fmt.Sprintf("places that do not grow steadily %.0f%%", other))
	}
	return strings.Join(parts, ", ")
}

// fullWords writes the time until the device is full, "" if that is more than a month or not known.
func fullWords(seconds float64) string {
	const minute, hour, day, month = 60, 3600, 24 * 3600, 30 * 24 * 3600
	if seconds <= 0 || seconds > month {
		return ""
	}
	for _, unit := range []struct {
		length float64
		name   string
	}{{day, "day"}, {hour, "hour"}, {minute, "minute"}} {
		if seconds >= 2*unit.length {
			return fmt.Sprintf("%.0f %ss", seconds/unit.length, unit.name)
		}
	}
	return Plural(cmp.Or(uint64(seconds+0.5), 1), "second", "seconds")
}
