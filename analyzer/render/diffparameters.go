package render

import (
	"errors"
	"fmt"
	"io"

	"memtrace/analyzer"
)

// DiffViews lists the views that compare two runs.
func DiffViews() []string { return []string{"parameters"} }

// DiffParameters writes what became of each parameter, for people. Both summaries must have been made with Options.Training.
func DiffParameters(w io.Writer, d *analyzer.Diff, o Options) error {
	if d.Parameters == nil {
		return errors.New("a summary was made without training")
	}
	p := &page{w: w, o: o}
	p.title("memtrace diff")
	p.gap()
	p.diffSide("base", d.Base)
	p.diffSide("new", d.New)
	p.gap()
	p.parameterChanges(d.Parameters)
	if p.err != nil {
		return fmt.Errorf("write the diff: %w", p.err)
	}
	return nil
}

func (p *page) parameterChanges(list []analyzer.DiffParameter) {
	same := uint64(0)
	var changed []analyzer.DiffParameter
	var base, now uint64
	for _, row := range list {
		base += row.Bytes.Base + row.Gradient.Base + row.Optimizer.Base
		now += row.Bytes.New + row.Gradient.New + row.Optimizer.New
		if row.State == analyzer.StateSame {
			same++
		} else {
			changed = append(changed, row)
		}
	}
	p.title("Parameters and buffers, growth first")
	p.gap()
	shown := pickChanges(changed, p.o.rows())
	var rows [][]cell
	for i, row := range changed {
		if shown[i] {
			name := clean(row.Name)
			if row.Category != "parameter" {
				name += " (" + clean(row.Category) + ")"
			}
			rows = append(rows, []cell{{name, plain}, {row.State, stateStyles[row.State]}, {orBlank(row.Bytes.Base), plain}, {orBlank(row.Bytes.New), plain}, signed(row.Bytes), signed(row.Gradient), signed(row.Optimizer)})
		}
	}
	if len(rows) > 0 {
		p.table([]column{{title: "name"}, {}, {title: "weight, base", right: true, optional: 1}, {title: "new", right: true, optional: 1}, {title: "weight by", right: true}, {title: "gradient by", right: true},
			{title: "optimizer by", right: true}}, rows)
	}
	if hidden := len(changed) - len(rows); hidden > 0 {
		p.line("  %s smaller changes not shown, with -n 0", Count(uint64(hidden)))
	}
	if same > 0 {
		p.line("  %s", plural(same, "is the same in both", "are the same in both"))
	}
	p.gap()
	p.line("  together %s in the base, %s in the new run, %s", exactBytes(base), exactBytes(now), SignedBytes(int64(now-base)))
}

// pickChanges picks the greatest changes, from both ends of the list.
func pickChanges(rows []analyzer.DiffParameter, limit int) []bool {
	show := make([]bool, len(rows))
	magnitude := func(i int) uint64 {
		if delta := rows[i].Delta(); delta < 0 {
			return -uint64(delta)
		}
		return uint64(rows[i].Delta())
	}
	for head, tail := 0, len(rows)-1; limit > 0 && head <= tail; limit-- {
		if magnitude(head) >= magnitude(tail) {
			show[head] = true
			head++
		} else {
			show[tail] = true
			tail--
		}
	}
	return show
}
