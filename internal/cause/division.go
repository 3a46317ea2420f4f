package cause

import (
	"cmp"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/fold"
	"memtrace/internal/profile"
)

const (
	// divisionReadable is how many rows are readable at a glance.
	divisionReadable = 6
	// divisionMost is the part of the whole, in percent, that divisionReadable rows should hold.
	divisionMost = 80
	// divisionKnown is the part, in percent, whose keys must be names for a grouping to be useful.
	divisionKnown = 60
	// divisionWhole is the part, in percent, from which on a single row has not divided anything.
	divisionWhole = 95
	divisionRows  = 20
	// maxDivisionDepth is how many levels of modules are tried.
	maxDivisionDepth = 12
)

// dividedList is the parts of what one place holds.
type dividedList struct {
	resolver *profile.Resolver
	list     []profile.Held
	bytes    uint64
}

// DivisionOf divides the place that holds more than half of what a level held at a moment. nil if no place does, or if
// nothing more is known of it.
func DivisionOf(r *profile.Resolver, level string, list []profile.Held) *report.Division {
	sums := make(map[string]uint64)
	var whole uint64
	for i := range list {
		h := &list[i]
		sums[siteOfHeld(r, h)] += h.Bytes
		whole += h.Bytes
	}
	d := &report.Division{Level: level, WholeBytes: whole}
	for site, bytes := range sums {
		if site != report.NoStack && bytes > whole/2 {
			d.Site, d.Bytes = site, bytes
		}
	}
	if d.Site == "" {
		return nil
	}
	of := dividedList{resolver: r, bytes: d.Bytes}
	for i := range list {
		if h := &list[i]; siteOfHeld(r, h) == d.Site {
			of.list = append(of.list, *h)
			_, user := r.PlaceOf(profile.StackID(nil, &h.Origin))
			d.User = d.User || user
		}
	}
	best := of.best(d.Site)
	if best == nil {
		return nil
	}
	d.By, d.Rows = best.by, best.rows[:min(divisionRows, len(best.rows))]
	for _, row := range best.rows[len(d.Rows):] {
		d.RestCount++
		d.RestBytes += row.Bytes
	}
	of.addParts(d, best)
	return d
}

// siteOfHeld is the place of a block; the backward pass counts as a part of the forward one.
func siteOfHeld(r *profile.Resolver, h *profile.Held) string {
	key := r.Stacks.Of(callstack.PairOf(profile.StackID(nil, &h.Origin))).Key
	for _, prefix := range callstack.BackwardOf {
		key = strings.TrimPrefix(key, prefix)
	}
	return key
}

// dividing is one way to divide a place.
type dividing struct {
	by    string
	rows  []report.DivisionRow
	keyOf []int // by number of the piece: its row
	known uint64
	most  int // rows that hold most of it, the largest ones
}

// best returns the most informative division: by module if a few rows hold most of it, else by inner function, else by
// operator, else by caller. nil if none is useful.
func (d *dividedList) best(site string) *dividing {
	var ways, left []*dividing
	operators := d.byKey("operator", profile.OperatorText, nil, func(key string) bool {
		return key != report.NoOperator
	})
	if operators != nil && report.CompiledBytes(operators.rows) > d.bytes/2 { // one module, whatever it was made of
		return operators
	}
	ways = append(ways, d.byModule(), d.byKey("inner", profile.InnerKey, profile.InnerLabel, func(key string) bool {
		return !d.isSite(key, site)
	}),
		operators, d.byCaller(site))
	for _, w := range ways {
		if w == nil || w.known < d.percent(divisionKnown) {
			continue
		}
		if w.most <= divisionReadable && w.rows[0].Bytes < d.percent(divisionWhole) {
			return w
		}
		left = append(left, w)
	}
	if len(left) == 0 {
		return nil
	}
	slices.SortStableFunc(left, func(a, b *dividing) int {
		return cmp.Or(compareBools(a.rows[0].Bytes >= d.percent(divisionWhole),
			b.rows[0].Bytes >= d.percent(divisionWhole)), cmp.Compare(a.most, b.most))
	})
	return left[0]
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// isSite reports whether an inner function is the place itself.
func (d *dividedList) isSite(key, site string) bool {
	for _, prefix := range callstack.BackwardOf {
		key = strings.TrimPrefix(key, prefix)
	}
	return key == site
}

func (d *dividedList) percent(n uint64) uint64 { return d.bytes/100*n + d.bytes%100*n/100 }

// byKey divides by a grouping of call stacks.
func (d *dividedList) byKey(by string, key, label func(*profile.Resolver, uint64) string,
	known func(key string) bool) *dividing {
	keys := make([]string, len(d.list))
	labels := make(map[string]string)
	for i := range d.list {
		id := profile.StackID(nil, &d.list[i].Origin)
		keys[i] = key(d.resolver, id)
		if label != nil && labels[keys[i]] == "" {
			labels[keys[i]] = label(d.resolver, id)
		}
	}
	w := d.divide(by, keys)
	for i := range w.rows {
		row := &w.rows[i]
		row.Known, row.Label = known(row.Key), labels[row.Key]
	}
	return w.weigh(d)
}

// byModule divides by the modules of the deepest level at which a few rows hold most of it; at no such level, by
// modules as they are.
func (d *dividedList) byModule() *dividing {
	keys := make([]string, len(d.list))
	for i := range d.list {
		keys[i] = profile.ModuleKey(d.resolver, profile.ModuleID(nil, &d.list[i].Origin))
	}
	return d.moduleLevels(keys)
}

// moduleLevels is byModule for the modules of the pieces.
func (d *dividedList) moduleLevels(keys []string) *dividing {
	depth := 0
	for _, key := range keys {
		depth = max(depth, strings.Count(key, ".")+1)
	}
	var first *dividing
	for level := min(depth, maxDivisionDepth); level > 0; level-- {
		cut, below := make([]string, len(keys)), make(map[string]bool)
		for i, key := range keys {
			cut[i] = upToLevel(key, level)
			below[cut[i]] = below[cut[i]] || cut[i] != key
		}
		w := d.divide("module", cut)
		for i := range w.rows {
			w.rows[i].Known = w.rows[i].Key != report.NoModule
		}
		for i, key := range cut {
			w.rows[w.keyOf[i]].Below = w.rows[w.keyOf[i]].Below || below[key]
		}
		if w.weigh(d); w.most <= divisionReadable {
			return w
		}
		if first == nil {
			first = w
		}
	}
	return first
}

// upToLevel returns the first parts of a module's path.
func upToLevel(path string, level int) string {
	for i := range len(path) {
		if path[i] == '.' {
			if level--; level == 0 {
				return path[:i]
			}
		}
	}
	return path
}

// divide sums up the pieces by their keys.
func (d *dividedList) divide(by string, keys []string) *dividing {
	index := make(map[string]int)
	var names []string
	var bytes []uint64
	w := &dividing{by: by, keyOf: make([]int, len(keys))}
	for i, key := range keys {
		n, known := index[key]
		if !known {
			n = len(names)
			index[key] = n
			names, bytes = append(names, key), append(bytes, 0)
		}
		bytes[n] += d.list[i].Bytes
	}
	folds := fold.FoldRows(by, names, bytes)
	slices.SortStableFunc(folds, func(a, b fold.Fold) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name))
	})
	rowOf := make([]int, len(names))
	for n, f := range folds {
		w.rows = append(w.rows, report.DivisionRow{Key: f.Name, Count: uint64(len(f.Members)), Bytes: f.Bytes,
			EachMin: f.Min, EachMax: f.Max})
		for _, m := range f.Members {
			rowOf[m] = n
		}
	}
	for i, key := range keys {
		w.keyOf[i] = rowOf[index[key]]
	}
	return w
}

// weigh rates how informative the rows are.
func (w *dividing) weigh(d *dividedList) *dividing {
	var sum uint64
	for _, row := range w.rows {
		if row.Known {
			w.known += row.Bytes
		}
		if sum < d.percent(divisionMost) {
			w.most++
		}
		sum += row.Bytes
	}
	return w
}

// addParts adds to each row its largest part by the other groupings of call stacks.
func (d *dividedList) addParts(v *report.Division, w *dividing) {
	for _, part := range []struct {
		by         string
		key, label func(*profile.Resolver, uint64) string
		set        func(row *report.DivisionRow, p *report.DivisionPart)
	}{
		{"inner", profile.InnerKey, profile.InnerLabel, func(row *report.DivisionRow, p *report.DivisionPart) {
			row.Inner = p
		}},
		{"operator", profile.OperatorText, nil, func(row *report.DivisionRow, p *report.DivisionPart) {
			row.Operator = p
		}},
	} {
		if part.by == v.By {
			continue
		}
		sums := make([]map[string]*report.DivisionPart, len(v.Rows))
		for i := range d.list {
			n := w.keyOf[i]
			if n >= len(v.Rows) {
				continue
			}
			id := profile.StackID(nil, &d.list[i].Origin)
			key := part.key(d.resolver, id)
			if sums[n] == nil {
				sums[n] = make(map[string]*report.DivisionPart)
			}
			p := sums[n][key]
			if p == nil {
				p = &report.DivisionPart{Key: key}
				if part.label != nil {
					p.Label = part.label(d.resolver, id)
				}
				sums[n][key] = p
			}
			p.Bytes += d.list[i].Bytes
		}
		for n := range v.Rows {
			if p := largestPart(sums[n]); p != nil && p.Bytes >= v.Rows[n].Bytes/2 && p.Key != report.NoOperator &&
				p.Key != report.NoStack && !d.isSite(p.Key, v.Site) {
				part.set(&v.Rows[n], p)
			}
		}
	}
}

func largestPart(parts map[string]*report.DivisionPart) (best *report.DivisionPart) {
	for _, p := range parts {
		if best == nil || p.Bytes > best.Bytes || p.Bytes == best.Bytes && p.Key < best.Key {
			best = p
		}
	}
	return best
}
