package oomtext

import (
	"fmt"
	"io"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// writeCategories prints what the framework's blocks were for when memory ran out.
func writeCategories(p *layout.Page, e *report.OOMEvent, framework string) {
	if len(e.Categories) == 0 {
		return
	}
	p.Title("What " + framework + "'s memory was for")
	p.Gap()
	var bytes, count uint64
	shares, largest := layout.SharesOf(e.Categories, func(c *report.OOMCategory) uint64 { return c.Bytes })
	var cells [][]layout.Cell
	for i, c := range e.Categories {
		bytes, count = bytes+c.Bytes, count+c.BlockCount
		cells = append(cells, []layout.Cell{{Text: sanitize.Text(layout.CategoryWord(c.Category))},
			{Text: layout.Bytes(c.Bytes), Style: layout.Strong}, {Text: layout.Percent(shares[i])},
			{Text: layout.Count(c.BlockCount)},
			{Text: layout.Bar(c.Bytes, largest, layout.BarWidth, p.ASCII), Style: layout.Blocks}})
	}
	cells = append(cells, []layout.Cell{{Text: "in blocks", Style: layout.Strong},
		{Text: layout.Bytes(bytes), Style: layout.Strong}, {Text: "100.0%"}, {Text: layout.Count(count)}, {}})
	p.Table([]layout.Column{{Title: "category"}, {Title: "bytes", Right: true}, {Title: "share", Right: true},
		{Title: "blocks", Right: true}, {Optional: 1}}, cells)
	p.Gap()
}

// writeRetries prints what followed after memory had run out.
func writeRetries(p *layout.Page, list []report.OOMRetries) {
	list = slices.DeleteFunc(slices.Clone(list), func(r report.OOMRetries) bool { return !isDetailed(&r) })
	if len(list) == 0 {
		return
	}
	p.Title("Attempts")
	p.Gap()
	for i := range list[:min(len(list), maxLines)] {
		p.Item(retriesText(&list[i]))
	}
	if more := len(list) - maxLines; more > 0 {
		p.Item("and " + layout.Plural(uint64(more), "time", "times") + " more")
	}
	p.Gap()
}

// isDetailed reports whether attempts need more than the statement that one failed, which is printed elsewhere.
func isDetailed(r *report.OOMRetries) bool {
	return r.FailedCount > 1 || r.GrantedTimeNS != 0 || r.AsMuchTimeNS != 0 || r.StepTimeNS != 0
}

// retriesText lists the failed attempts, and the one that succeeded, as far as that is known.
func retriesText(r *report.OOMRetries) string { return attemptsText(r) + leftText(r) }

// leftText describes the memory left by failed attempts.
func leftText(r *report.OOMRetries) string {
	if !r.Leaves() {
		return ""
	}
	return fmt.Sprintf(" At %s, %s of the %s in blocks had been made by attempts that failed before.",
		layout.Moment(r.LeftTimeNS), layout.Bytes(r.LeftBytes), layout.Bytes(r.LiveBytes))
}

func attemptsText(r *report.OOMRetries) string {
	text := fmt.Sprintf("The attempt at %s failed (%s requested)", layout.Moment(r.LastTimeNS),
		layout.Bytes(r.RequestedBytes))
	if r.FailedCount > 1 {
		text = fmt.Sprintf("%s failed, the first at %s (%s requested), the last at %s (%s)",
			layout.Plural(r.FailedCount, "attempt", "attempts"), layout.Moment(r.FirstTimeNS),
			layout.Bytes(r.FirstRequestedBytes),
			layout.Moment(r.LastTimeNS), layout.Bytes(r.RequestedBytes))
	}
	attempt, succeeded := r.Succeeded()
	switch {
	case succeeded:
		text += fmt.Sprintf("; attempt %s succeeded: a step ended at %s.", layout.Count(attempt),
			layout.Moment(r.StepTimeNS))
	case r.GrantedTimeNS == 0:
		text += "; no later attempt is known to have succeeded."
		if r.AsMuchTimeNS == 0 {
			return text
		}
	default:
		text += "; no step is known to have ended afterwards."
	}
	if r.GrantedTimeNS != 0 {
		text += fmt.Sprintf(" The same call was granted %s at %s.", layout.Bytes(r.GrantedBytes),
			layout.Moment(r.GrantedTimeNS))
	}
	if r.AsMuchTimeNS != 0 {
		return text + fmt.Sprintf(" A block as large as the refused one was granted at %s.",
			layout.Moment(r.AsMuchTimeNS))
	}
	return text + " No block as large as the refused one was granted."
}

// AttemptSentence names briefly the attempt on a device that succeeded, for a verdict: " Attempt 3 succeeded."; "" if
// none is known to have.
func AttemptSentence(o *report.OOM, device int16) string {
	series, last := 0, uint64(0)
	for i := range o.Retries {
		if o.Retries[i].Device != device {
			continue
		}
		attempt, succeeded := o.Retries[i].Succeeded()
		if !succeeded {
			return ""
		}
		series, last = series+1, attempt
	}
	switch series {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf(" Attempt %s succeeded.", layout.Count(last))
	}
	return " Each time a later attempt succeeded."
}

// WriteRetries prints what followed after memory had run out, as the end of the text that Write began.
func WriteRetries(w io.Writer, r *report.OOMRetries, o layout.Options) error {
	p := layout.NewPage(w, o)
	writeRetries(p, []report.OOMRetries{*r})
	if p.Err() != nil {
		return fmt.Errorf("write the OOM text: %w", p.Err())
	}
	return nil
}
