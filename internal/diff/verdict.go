package diff

import (
	"cmp"
	"fmt"
	"slices"

	"memtrace/analyzer/report"
	"memtrace/internal/fold"
)

// Verdict summarizes the difference: by how much the memory of the level that reports put first changed, and the
// largest change of the same direction.
type Verdict struct {
	Level  string  `json:"level"`
	Bytes  Change  `json:"bytes"`  // at the peak, or at the moments that are compared
	Causes []Cause `json:"causes"` // at most one by each grouping, the one that explains most first
}

// Cause is a row, or several folded into one, that changed in the direction of the whole.
type Cause struct {
	By    string `json:"by"`   // "parameters", or a grouping
	Kind  string `json:"kind"` // of parameters: "parameter", "buffer" or "optimizer"; else ""
	Name  string `json:"name"`
	State string `json:"state"`
	Count int    `json:"count"` // names that are folded into one
	Delta int64  `json:"delta"`
	With  string `json:"with,omitempty"`  // what of a parameter's changed besides: "gradient", "optimizer state", or both
	Since string `json:"since,omitempty"` // as of a Row
	// names of others of the same kind and state that changed by as much each, at most maxAlike
	Alike      []string `json:"alike,omitempty"`
	AlikeCount int      `json:"alike_count,omitempty"` // of all of them
}

// maxAlike bounds Cause.Alike.
const maxAlike = 2

// Whole is the change together with that of what changed alike.
func (c *Cause) Whole() uint64 { return magnitude(c.Delta) * uint64(1+c.AlikeCount) }

// alike takes in another one that changed in the same way.
func (c *Cause) alike(name string) {
	if c.AlikeCount++; len(c.Alike) < maxAlike {
		c.Alike = append(c.Alike, name)
	}
}

// causeLeast is the part of the change that a row must explain to be named, together with those alike, as a divisor.
const causeLeast = 4

// verdict sums the difference up.
func (d *Diff) verdict(level string) *Verdict {
	v := &Verdict{Level: level, Causes: []Cause{}}
	for _, l := range d.Levels {
		if l.Level == level && l.Device == "all" {
			v.Bytes = l.PeakBytes
		}
	}
	if v.Bytes.Delta == 0 {
		return v
	}
	v.add(d.parameterCause())
	for _, by := range d.By {
		for _, g := range d.Groups {
			if g.By == by && g.Level == level {
				v.add(v.rowCause(&g))
			}
		}
	}
	slices.SortStableFunc(v.Causes, func(a, b Cause) int { return cmp.Compare(precedence(a.By), precedence(b.By)) })
	return v
}

// add keeps a cause that explains a good part of the change, and not more than the whole change.
func (v *Verdict) add(c *Cause) {
	if c != nil && (c.Delta > 0) == (v.Bytes.Delta > 0) && v.explains(c) {
		v.Causes = append(v.Causes, *c)
	}
}

func (v *Verdict) explains(c *Cause) bool {
	return c.Whole() >= magnitude(v.Bytes.Delta)/causeLeast
}

func magnitude(delta int64) uint64 {
	if delta < 0 {
		return -uint64(delta)
	}
	return uint64(delta)
}

// rowCause is the row of a group that changed most in the direction of the whole. One that only follows a wider module
// gives way to the largest that does not, if that explains enough.
func (v *Verdict) rowCause(g *Group) *Cause {
	list := slices.DeleteFunc(g.Folded(true), func(f FoldedRow) bool {
		delta := f.Row.PeakBytes.Delta
		return delta == 0 || (delta > 0) != (v.Bytes.Delta > 0) || !report.NamesOwner(f.Row.Key)
	})
	first := largestRow(g.By, list, func(f *FoldedRow) bool { return f.Row.Since == "" })
	if first != nil && v.explains(first) {
		return first
	}
	return largestRow(g.By, list, func(*FoldedRow) bool { return true })
}

// largestRow is the one among some rows that changed most, with those that changed in the same way; nil without any.
func largestRow(by string, list []FoldedRow, among func(*FoldedRow) bool) (best *Cause) {
	for i := range list {
		r := &list[i].Row
		if !among(&list[i]) {
			continue
		}
		if best != nil && r.State == best.State && r.Since == best.Since && r.PeakBytes.Delta == best.Delta {
			best.alike(r.Title())
		} else if best == nil || magnitude(r.PeakBytes.Delta) > magnitude(best.Delta) {
			best = &Cause{By: by, Name: r.Title(), State: r.State, Count: list[i].Count, Delta: r.PeakBytes.Delta,
				Since: r.Since}
		}
	}
	return best
}

// parameterCause is the parameters or buffers that changed most, with all memory that belongs to them.
func (d *Diff) parameterCause() (best *Cause) {
	for _, f := range FoldParameterChanges(d.Parameters) {
		r, delta := &f.Row, f.Row.Delta()
		if r.State == StateSame {
			continue
		}
		if best != nil && r.State == best.State && r.Category == best.Kind && delta == best.Delta &&
			f.Count == best.Count && r.with() == best.With {
			best.alike(r.Name)
		} else if best == nil || magnitude(delta) > magnitude(best.Delta) {
			best = &Cause{By: "parameters", Kind: r.Category, Name: r.Name, State: r.State, Count: f.Count,
				Delta: delta, With: r.with()}
		}
	}
	return best
}

// FoldedRow is a row, or several of repeated modules that changed in the same way, as one.
type FoldedRow struct {
	Row   Row
	Count int
	Least uint64 // the smallest and the largest change of one of them, in bytes at the peak, by magnitude
	Most  uint64
}

// Folded joins rows of repeated modules and parameters that have the same state: growth first, but after it the growth
// that only follows a wider module. With together false every row is separate.
func (g *Group) Folded(together bool) []FoldedRow {
	list := make([]FoldedRow, 0, len(g.Rows))
	if !together || !fold.FoldsRows(g.By) {
		for _, r := range g.Rows {
			list = append(list, FoldedRow{r, 1, magnitude(r.PeakBytes.Delta), magnitude(r.PeakBytes.Delta)})
		}
		slices.SortStableFunc(list, compareFolded)
		return list
	}
	kind := func(i int) string { return g.Rows[i].State + g.Rows[i].Since }
	eachFold(len(g.Rows), kind, func(members []int) []fold.Fold {
		keys, sizes := make([]string, len(members)), make([]uint64, len(members))
		for n, i := range members {
			keys[n], sizes[n] = g.Rows[i].Key, magnitude(g.Rows[i].PeakBytes.Delta)
		}
		return fold.FoldRows(g.By, keys, sizes)
	}, func(f *fold.Fold, members []int) {
		sum := FoldedRow{g.Rows[members[0]], len(members), f.Min, f.Max}
		for _, i := range members[1:] {
			sum.Row.add(&g.Rows[i])
		}
		if f.Repeated() {
			sum.Row.Key, sum.Row.Label, sum.Row.BaseKey = f.Name, "", ""
		}
		list = append(list, sum)
	})
	slices.SortStableFunc(list, compareFolded)
	return list
}

// compareFolded orders rows. What follows a wider module comes before what shrank.
func compareFolded(a, b FoldedRow) int {
	rank := func(r *Row) int {
		switch {
		case r.PeakBytes.Delta <= 0:
			return 2
		case r.Since != "":
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(&a.Row), rank(&b.Row)), cmp.Compare(b.Row.PeakBytes.Delta, a.Row.PeakBytes.Delta),
		cmp.Compare(b.Row.LiveBytes.Delta, a.Row.LiveBytes.Delta))
}

// eachFold folds the members of every kind by themselves.
func eachFold(count int, kind func(i int) string, fold func(members []int) []fold.Fold,
	each func(f *fold.Fold, members []int)) {
	kinds := make(map[string][]int)
	var order []string
	for i := range count {
		k := kind(i)
		if kinds[k] == nil {
			order = append(order, k)
		}
		kinds[k] = append(kinds[k], i)
	}
	for _, k := range order {
		for _, f := range fold(kinds[k]) {
			members := make([]int, len(f.Members))
			for n, m := range f.Members {
				members[n] = kinds[k][m]
			}
			each(&f, members)
		}
	}
}

// add adds another row of the same state.
func (r *Row) add(o *Row) {
	r.PeakBytes.add(o.PeakBytes)
	r.LiveBytes.add(o.LiveBytes)
	r.AllocCount.add(o.AllocCount)
	r.AllocBytes.add(o.AllocBytes)
}

// add sums two changes up.
func (c *Change) add(o Change) {
	sum := changeOf(c.Base+o.Base, c.New+o.New)
	if c.BaseLower != nil && o.BaseLower != nil && c.NewLower != nil && o.NewLower != nil {
		base, changed := *c.BaseLower+*o.BaseLower, *c.NewLower+*o.NewLower
		sum.BaseLower, sum.NewLower = &base, &changed
	}
	if c.Certain != nil && o.Certain != nil {
		certain := *c.Certain && *o.Certain
		sum.Certain = &certain
	}
	*c = sum
}

// FoldedParameter is the change of a parameter, or of several of the same size in repeated modules, as one.
type FoldedParameter struct {
	Row         Parameter
	Count       int
	Least, Most uint64 // the smallest and the largest change of one of them
}

// FoldParameterChanges joins parameters that differ in an index and have the same sizes and state, growth first.
func FoldParameterChanges(rows []Parameter) []FoldedParameter {
	var list []FoldedParameter
	kind := func(i int) string {
		return fmt.Sprint(rows[i].Category, " ", rows[i].State, " ", rows[i].Bytes.Base)
	}
	eachFold(len(rows), kind, func(members []int) []fold.Fold {
		names, deltas, sizes := make([]string, len(members)), make([]uint64, len(members)), make([]uint64, len(members))
		for n, i := range members {
			names[n], deltas[n], sizes[n] = rows[i].Name, magnitude(rows[i].Delta()), rows[i].Bytes.New
		}
		return fold.Sized(names, deltas, sizes)
	}, func(f *fold.Fold, members []int) {
		sum := FoldedParameter{rows[members[0]], len(members), f.Min, f.Max}
		sum.Row.Name = f.Name
		for _, i := range members[1:] {
			sum.Row.Bytes.add(rows[i].Bytes)
			sum.Row.Gradient.add(rows[i].Gradient)
			sum.Row.Optimizer.add(rows[i].Optimizer)
		}
		list = append(list, sum)
	})
	slices.SortStableFunc(list, func(a, b FoldedParameter) int { return cmp.Compare(b.Row.Delta(), a.Row.Delta()) })
	return list
}

// precedence orders causes that name parameters before others.
func precedence(by string) int {
	if by == "parameters" {
		return 0
	}
	return 1
}
