package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"memtrace/internal/cli"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// byTrace divides results into those of one trace each, in their order.
func (o *Outcome) byTrace() (groups [][]Result) {
	for _, r := range o.Results {
		i := slices.IndexFunc(groups, func(g []Result) bool { return g[0].Trace == r.Trace })
		if i < 0 {
			groups = append(groups, nil)
			i = len(groups) - 1
		}
		groups[i] = append(groups[i], r)
	}
	return groups
}

// title names the trace of some results.
func title(r *Result) string {
	switch {
	case r.Trace == "":
		return "all ranks"
	case r.Rank != nil:
		return fmt.Sprintf("%s, rank %d", sanitize.Text(r.Trace), *r.Rank)
	}
	return sanitize.Text(r.Trace)
}

// Text prints the outcome: a sentence, a table for each trace, and who grew.
func Text(w io.Writer, o *Outcome, style layout.Options) error {
	p := layout.NewPage(w, style)
	groups := o.byTrace()
	if o.count(Broken) == uint64(len(o.Results)) {
		return nil // there is nothing to show but errors
	}
	heading := "memtrace check"
	if len(groups) == 1 {
		heading += "  " + title(&groups[0][0])
	}
	p.Title(heading)
	p.Gap()
	p.Line("  %s", p.Paint(layout.Strong, o.Headline()))
	p.Gap()
	if o.Budget != "" {
		budget := sanitize.Text(o.Budget)
		if o.Run != "" {
			budget += ", run " + sanitize.Text(o.Run)
		}
		p.Field("budget", budget)
		p.Gap()
	}
	for _, group := range groups {
		if len(groups) > 1 {
			p.Title(title(&group[0]))
			p.Gap()
		}
		writeTable(p, group)
		for i := range group {
			if r := &group[i]; r.Status != Broken && r.remark() != "" { // errors are on standard error
				p.Item(sanitize.Text(r.Gate + ": " + r.remark()))
				if r.File != "" {
					p.Line("    %s", sanitize.Text(fmt.Sprintf("%s:%d", cli.ShortPath(r.File), r.Line)))
				}
			}
		}
		p.Gap()
	}
	if p.Err() != nil {
		return fmt.Errorf("write the result of the check: %w", p.Err())
	}
	return nil
}

func writeTable(p *layout.Page, results []Result) {
	columns := []layout.Column{{Title: "gate"}, {Title: "baseline", Right: true, Optional: 1},
		{Title: "limit", Right: true}, {Title: "value", Right: true}, {}}
	based := slices.ContainsFunc(results, func(r Result) bool { return r.Base != nil })
	var rows [][]layout.Cell
	for i := range results {
		r := &results[i]
		if r.Gate == "" {
			continue // the trace was not checked at all
		}
		s := layout.Alarm
		if r.Status == Passed {
			s = layout.Relief
		}
		limit := r.limitText()
		if p.ASCII {
			limit = strings.ReplaceAll(limit, "≥", ">=")
		}
		rows = append(rows, []layout.Cell{{Text: sanitize.Text(r.label())}, {Text: figureText(r.Base)}, {Text: limit},
			{Text: figureText(r.Value)}, {Text: r.statusWords(), Style: s}})
	}
	if len(rows) == 0 {
		return
	}
	if !based {
		columns = slices.Delete(columns, 1, 2)
		for i := range rows {
			rows[i] = slices.Delete(rows[i], 1, 2)
		}
	}
	p.Table(columns, rows)
	if slices.ContainsFunc(results, func(r Result) bool { return r.Status != Broken && r.remark() != "" }) {
		p.Gap()
	}
}

// label is a gate in a table. Where the limit has a column of its own, it is left out here.
func (r *Result) label() string {
	if before, _, found := strings.Cut(r.Gate, ">="); found && r.Limit != nil {
		return before
	}
	return r.Gate
}
