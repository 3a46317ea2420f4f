package render

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer/diff"
	"memtrace/internal/visible"
)

// DiffViews lists the views that compare two runs.
func DiffViews() []string { return []string{"parameters"} }

// DiffParameters writes what became of each parameter, for people. Both summaries must have been made with
// Options.Training.
func DiffParameters(w io.Writer, d *diff.Diff, o Options) error {
	if d.Parameters == nil {
		return errors.New("a summary was made without training")
	}
	p := &diffPage{page: newPage(w, o)}
	p.diffHeading(d)
	p.parameterChanges(d.Parameters)
	if p.failure() != nil {
		return fmt.Errorf("write the diff: %w", p.failure())
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
	p.title("Parameters and buffers, growth first")
	p.gap()
	folded := diff.FoldParameterChanges(changed)
	if p.Unfolded {
		folded = nil
		for _, row := range changed {
			folded = append(folded, diff.FoldedParameter{Row: row, Count: 1})
		}
	}
	shown := largestChanges(len(folded), p.rowLimit(), func(i int) int64 { return folded[i].Row.Delta() })
	var rows [][]cell
	var each []string
	for i, f := range folded {
		if shown[i] {
			row := &f.Row
			name := visible.Text(row.Name)
			if row.Category != "parameter" {
				name += " (" + visible.Text(row.Category) + ")"
			}
			rows = append(rows, []cell{{name, plain}, states[row.State], {orBlank(row.Bytes.Base), plain}, {orBlank(row.Bytes.New), plain}, signed(row.Bytes), signed(row.Gradient), signed(row.Optimizer)})
			each = append(each, p.each(f.Count, f.Least, f.Most))
		}
	}
	if len(rows) > 0 {
		columns := []column{{title: "name"}, {}, {title: "weight, base", right: true, optional: 3}, {title: "new", right: true, optional: 3}, {title: "Δ weight", right: true}, {title: "Δ gradient", right: true},
			{title: "Δ optimizer", right: true}}
		if p.ASCII {
			columns[4].title, columns[5].title, columns[6].title = "weight +/-", "gradient +/-", "optimizer +/-"
		}
		columns, rows = eachColumn(columns, rows, each)
		p.table(columns, rows)
	}
	if hidden := len(folded) - len(rows); hidden > 0 {
		p.line("  %s not shown; -n 0 shows all", plural(uint64(hidden), "smaller change", "smaller changes"))
	}
	if same > 0 {
		p.line("  %s", plural(same, "row unchanged", "rows unchanged"))
	}
	p.gap()
	p.line("  total %s in the base, %s in the new run, %s", exactBytes(base), exactBytes(now), SignedBytes(int64(now-base)))
}
