package analyzer

import (
	"cmp"
	"slices"
	"strings"
)

// Division says what the memory of one place in the program consists of, where that place holds most of a level: the line that calls a library's training loop, say, tells nobody
// what the memory is for. Its rows and the rest add up to Bytes.
type Division struct {
	Site       string        `json:"site"` // key of the place, without "backward of"
	User       bool          `json:"user"` // the place is the program's own code
	Level      string        `json:"level"`
	Bytes      uint64        `json:"bytes"`       // held by the place and by the backward pass of what it called
	WholeBytes uint64        `json:"whole_bytes"` // held by all blocks of the level
	By         string        `json:"by"`          // "module", "inner" or "operator": the grouping that says most
	Rows       []DivisionRow `json:"rows"`        // most first
	RestCount  uint64        `json:"rest_count"`  // rows that are not listed
	RestBytes  uint64        `json:"rest_bytes"`
}

// DivisionRow is one key, or several modules that differ in an index only.
type DivisionRow struct {
	Key      string        `json:"key"`             // of several modules "h.{0..11}.attn"
	Label    string        `json:"label,omitempty"` // for people, where the key says more than they want to read
	Known    bool          `json:"known"`           // false: the key says that there is no name
	Count    uint64        `json:"count"`           // modules that the key stands for; 1 of other groupings
	Bytes    uint64        `json:"bytes"`
	EachMin  uint64        `json:"each_min_bytes"` // the smallest and the largest of them
	EachMax  uint64        `json:"each_max_bytes"`
	Below    bool          `json:"below"`              // modules below it are part of it
	Inner    *DivisionPart `json:"inner,omitempty"`    // the function outside the framework that holds at least half of the row; nil if none does
	Operator *DivisionPart `json:"operator,omitempty"` // the same of operators
}

// DivisionPart is the largest part of a row.
type DivisionPart struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
	Bytes uint64 `json:"bytes"`
}

// Title returns what people read: the label, or the key.
func (r *DivisionRow) Title() string { return cmp.Or(r.Label, r.Key) }

// Title returns what people read: the label, or the key.
func (p *DivisionPart) Title() string { return cmp.Or(p.Label, p.Key) }

const (
	// divisionReadable is how many rows people take in at a glance.
	divisionReadable = 6
	// divisionMost is the part of the whole, in percent, that so many rows should hold.
	divisionMost = 80
	// divisionKnown is the part, in percent, whose keys must be names for a grouping to say anything.
	divisionKnown = 60
	// divisionWhole is the part, in percent, from which on a single row has not divided anything.
	divisionWhole = 95
	divisionRows  = 20
	// maxDivisionDepth is how many levels of modules are tried.
	maxDivisionDepth = 12
)

// divided is what one place holds, in pieces.
type divided struct {
	resolver *resolver
	list     []held
	bytes    uint64
}

// division divides the place that holds more than half of an account at a moment. nil if no place does, or if nothing more is known of it.
func (c *collector) division(m *moment, a Account) *Division {
	sums := make(map[string]uint64)
	var whole uint64
	for i := range m.held[a] {
		h := &m.held[a][i]
		sums[c.askedAt(h)] += h.bytes
		whole += h.bytes
	}
	d := &Division{Level: a.String(), WholeBytes: whole}
	for site, bytes := range sums {
		if site != NoStack && bytes > whole/2 {
			d.Site, d.Bytes = site, bytes
		}
	}
	if d.Site == "" {
		return nil
	}
	of := divided{resolver: &c.resolver, bytes: d.Bytes}
	for i := range m.held[a] {
		if h := &m.held[a][i]; c.askedAt(h) == d.Site {
			of.list = append(of.list, *h)
			_, user := c.resolver.placeOf(stackID(nil, &h.origin))
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

// askedAt is the place that a block belongs to, taking the backward pass as a part of the forward one.
func (c *collector) askedAt(h *held) string {
	key := c.resolver.stacks.of(pairOf(stackID(nil, &h.origin))).key
	for _, prefix := range backwardOf {
		key = strings.TrimPrefix(key, prefix)
	}
	return key
}

// dividing is one way to divide a place.
type dividing struct {
	by    string
	rows  []DivisionRow
	keyOf []int // by number of the piece: its row
	known uint64
	most  int // rows that hold most of it, the largest ones
}

// best returns the way to divide that says most: by module if a few rows hold most of it, else by inner function, else by operator. nil if none says anything.
func (d *divided) best(site string) *dividing {
	var ways, left []*dividing
	ways = append(ways, d.byModule(), d.byKey("inner", innerKey, innerLabel, func(key string) bool { return !d.isSite(key, site) }),
		d.byKey("operator", operatorText, nil, func(key string) bool { return key != NoOperator }))
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
		return cmp.Or(compareBools(a.rows[0].Bytes >= d.percent(divisionWhole), b.rows[0].Bytes >= d.percent(divisionWhole)), cmp.Compare(a.most, b.most))
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
func (d *divided) isSite(key, site string) bool {
	for _, prefix := range backwardOf {
		key = strings.TrimPrefix(key, prefix)
	}
	return key == site
}

func (d *divided) percent(n uint64) uint64 { return d.bytes/100*n + d.bytes%100*n/100 }

// byKey divides by a grouping of call stacks.
func (d *divided) byKey(by string, key, label func(*resolver, uint64) string, known func(key string) bool) *dividing {
	keys := make([]string, len(d.list))
	labels := make(map[string]string)
	for i := range d.list {
		id := stackID(nil, &d.list[i].origin)
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

// byModule divides by the modules of the deepest level at which a few rows hold most of it; at no such level, by modules as they are.
func (d *divided) byModule() *dividing {
	keys := make([]string, len(d.list))
	for i := range d.list {
		keys[i] = moduleKey(d.resolver, moduleID(nil, &d.list[i].origin))
	}
	return d.moduleLevels(keys)
}

// moduleLevels is byModule for the modules of the pieces.
func (d *divided) moduleLevels(keys []string) *dividing {
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
			w.rows[i].Known = w.rows[i].Key != NoModule
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
func (d *divided) divide(by string, keys []string) *dividing {
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
		bytes[n] += d.list[i].bytes
	}
	folds := FoldRows(by, names, bytes)
	slices.SortStableFunc(folds, func(a, b NameFold) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), strings.Compare(a.Name, b.Name)) })
	rowOf := make([]int, len(names))
	for n, f := range folds {
		w.rows = append(w.rows, DivisionRow{Key: f.Name, Count: uint64(len(f.Members)), Bytes: f.Bytes, EachMin: f.Min, EachMax: f.Max})
		for _, m := range f.Members {
			rowOf[m] = n
		}
	}
	for i, key := range keys {
		w.keyOf[i] = rowOf[index[key]]
	}
	return w
}

// weigh says how much the rows tell.
func (w *dividing) weigh(d *divided) *dividing {
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

// addParts tells each row what holds most of it, by the other groupings of call stacks.
func (d *divided) addParts(v *Division, w *dividing) {
	for _, part := range []struct {
		by         string
		key, label func(*resolver, uint64) string
		set        func(row *DivisionRow, p *DivisionPart)
	}{
		{"inner", innerKey, innerLabel, func(row *DivisionRow, p *DivisionPart) { row.Inner = p }},
		{"operator", operatorText, nil, func(row *DivisionRow, p *DivisionPart) { row.Operator = p }},
	} {
		if part.by == v.By {
			continue
		}
		sums := make([]map[string]*DivisionPart, len(v.Rows))
		for i := range d.list {
			n := w.keyOf[i]
			if n >= len(v.Rows) {
				continue
			}
			id := stackID(nil, &d.list[i].origin)
			key := part.key(d.resolver, id)
			if sums[n] == nil {
				sums[n] = make(map[string]*DivisionPart)
			}
			p := sums[n][key]
			if p == nil {
				p = &DivisionPart{Key: key}
				if part.label != nil {
					p.Label = part.label(d.resolver, id)
				}
				sums[n][key] = p
			}
			p.Bytes += d.list[i].bytes
		}
		for n := range v.Rows {
			if p := largestPart(sums[n]); p != nil && p.Bytes >= v.Rows[n].Bytes/2 && p.Key != NoOperator && p.Key != NoStack && !d.isSite(p.Key, v.Site) {
				part.set(&v.Rows[n], p)
			}
		}
	}
}

func largestPart(parts map[string]*DivisionPart) (best *DivisionPart) {
	for _, p := range parts {
		if best == nil || p.Bytes > best.Bytes || p.Bytes == best.Bytes && p.Key < best.Key {
			best = p
		}
	}
	return best
}
