package diff

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
)

// Parameter compares what belongs to one parameter or buffer, in bytes of its elements. One that is missing on a side
// has zeros there.
type Parameter struct {
	Name      string `json:"name"`
	Category  string `json:"category"`
	State     string `json:"state"` // as of a Row, by the sum of the three
	Bytes     Change `json:"bytes"`
	Gradient  Change `json:"gradient_bytes"`
	Optimizer Change `json:"optimizer_bytes"` // all states together
}

// Delta is by how much all that belongs to the parameter grew.
func (p *Parameter) Delta() int64 { return p.Bytes.Delta + p.Gradient.Delta + p.Optimizer.Delta }

// with names what changed of the parameter besides itself.
func (p *Parameter) with() string {
	var changed []string
	if p.Gradient.Delta != 0 {
		changed = append(changed, "gradient")
	}
	if p.Optimizer.Delta != 0 {
		changed = append(changed, "optimizer state")
	}
	if p.Bytes.Delta == 0 {
		return ""
	}
	return strings.Join(changed, " and ")
}

// diffParameters compares parameters of two runs by name. Growth comes first; what did not change keeps the new run's
// order. nil if a side was summarised without training.
func diffParameters(base, changed *report.Training) []Parameter {
	if base == nil || changed == nil {
		return nil
	}
	type key struct{ name, category string }
	type pair struct{ base, changed *report.Parameter }
	pairs := make(map[key]*pair)
	var order []key
	for side, list := range [][]report.Parameter{changed.Parameters, base.Parameters} {
		for i := range list {
			k := key{list[i].Name, list[i].Category}
			if pairs[k] == nil {
				pairs[k] = &pair{}
				order = append(order, k)
			}
			if side == 0 {
				pairs[k].changed = &list[i]
			} else {
				pairs[k].base = &list[i]
			}
		}
	}
	rows := make([]Parameter, 0, len(order))
	for _, k := range order {
		p := pairs[k]
		rows = append(rows, compareParameters(k.name, k.category, p.base, p.changed))
	}
	slices.SortStableFunc(rows, func(a, b Parameter) int { return cmp.Compare(b.Delta(), a.Delta()) })
	return rows
}

// compareParameters makes a row; one of the sides may be nil.
func compareParameters(name, category string, base, changed *report.Parameter) Parameter {
	var none report.Parameter
	row := Parameter{Name: name, Category: category}
	switch {
	case base == nil:
		row.State, base = StateNew, &none
	case changed == nil:
		row.State, changed = StateGone, &none
	}
	row.Bytes = changeOf(base.Bytes, changed.Bytes)
	row.Gradient = changeOf(base.Gradient, changed.Gradient)
	baseState, _ := base.StateBytes()
	state, _ := changed.StateBytes()
	row.Optimizer = changeOf(baseState, state)
	switch delta := cmp.Or(row.Delta(), row.Bytes.Delta, row.Gradient.Delta); {
	case row.State != "":
	case delta > 0:
		row.State = StateGrew
	case delta < 0:
		row.State = StateShrank
	default:
		row.State = StateSame
	}
	return row
}
