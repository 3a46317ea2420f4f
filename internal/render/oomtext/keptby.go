package oomtext

import (
	"fmt"
	"time"

	"memtrace/analyzer/report"
	"memtrace/internal/render/layout"
)

// keptBytes is how wide the bytes of a holder are.
const keptBytes = 17

// WriteKeptBy lists what referred to tensors, as memtrace ctl PID referrers names it.
func WriteKeptBy(p *layout.Page, k *report.KeptBy) {
	if k == nil || (k.Skipped == "" && len(k.Holders) == 0) {
		return
	}
	p.Title("What keeps tensors alive")
	p.Gap()
	if k.Skipped != "" {
		p.Line("  not known: %s", k.Skipped)
		p.Gap()
		return
	}
	rows := k.Holders[:min(len(k.Holders), p.RowLimit())]
	for i := range rows {
		bytes, name, what := layout.KeptRow(&rows[i])
		p.Line("  %s  %s", p.Paint(layout.Strong, fmt.Sprintf("%*s", keptBytes, bytes)), name)
		p.Line("  %*s  %s", keptBytes, "", what)
	}
	p.Gap()
	text := "found in " + layout.Duration(time.Duration(k.DurationNS).Nanoseconds())
	if k.Late {
		text += "; the time was over before all had been looked at"
	}
	p.Field("", text)
	p.Gap()
}
