package render

import (
	"errors"
	"fmt"
	"io"

	"memtrace/internal/diff"
	"memtrace/internal/render/layout"
	"memtrace/internal/sanitize"
)

// DiffViews lists the views that compare two runs.
func DiffViews() []string { return []string{"parameters"} }

// DiffParameters prints the change of each parameter. Both summaries must have been made with Options.Training.
func DiffParameters(w io.Writer, d *diff.Diff, o layout.Options) error {
	if d.Parameters == nil {
		return errors.New("a summary was made without training")
	}
	p := &diffPage{Page: layout.NewPage(w, o)}
	p.diffHeading(d)
	p.parameterChanges(d.Parameters)
	if p.Err() != nil {
		return fmt.Errorf("write the diff: %w", p.Err())
	}
	return nil
}

func (p *diffPage) parameterChanges(list []diff.Parameter) {
	same := uint64(0)
	var changed []diff.Parameter
	var base, now uint64
	for _, row := range list {
		base += row.Bytes.Base + row.Gradient.Base + row.Optimizer.Base
		now += row.Bytes.New + row.Gradient.New + row.Optimizer.New
		if row.State == diff.StateSame {
			same++
		} else {
			changed = append(changed, row)
		}
	}
	p.Title("Parameters and buffers, growth first")
	p.Gap()
	folded := diff.FoldParameterChanges(changed)
	if p.Unfolded {
		folded = nil
		for _, row := range changed {
			folded = append(folded, diff.FoldedParameter{Row: row, Count: 1})
		}
	}
	shown := largestChanges(len(folded), p.RowLimit(), func(i int) int64 { return folded[i].Row.Delta() })
	var rows [][]layout.Cell
	var each []string
	for i, f := range folded {
		if shown[i] {
			row := &f.Row
			name := sanitize.Text(row.Name)
			if row.Category != "parameter" {
				name += " (" + sanitize.Text(row.Category) + ")"
			}
			rows = append(rows, []layout.Cell{{Text: name}, states[row.State],
				{Text: layout.BytesOrDash(row.Bytes.Base)}, {Text: layout.BytesOrDash(row.Bytes.New)},
				signed(row.Bytes), signed(row.Gradient), signed(row.Optimizer)})
			each = append(each, p.Each(f.Count, f.Least, f.Most))
		}
	}
	if len(rows) > 0 {
		columns := []layout.Column{{Title: "name"}, {}, {Title: "weight, base", Right: true, Optional: 3},
			{Title: "new", Right: true, Optional: 3}, {Title: "Δ weight", Right: true},
			{Title: "Δ gradient", Right: true},
			{Title: "Δ optimizer", Right: true}}
		if p.ASCII {
			columns[4].Title, columns[5].Title, columns[6].Title = "weight +/-", "gradient +/-", "optimizer +/-"
		}
		columns, rows = layout.EachColumn(columns, rows, each)
		p.Table(columns, rows)
	}
	if hidden := len(folded) - len(rows); hidden > 0 {
		p.Line("  %s not shown; -n 0 shows all", layout.Plural(uint64(hidden), "smaller change", "smaller changes"))
	}
	if same > 0 {
		p.Line("  %s", layout.Plural(same, "row unchanged", "rows unchanged"))
	}
	p.Gap()
	p.Line("  total %s in the base, %s in the new run, %s", layout.ExactBytes(base), layout.ExactBytes(now),
		layout.SignedBytes(int64(now-base)))
}
