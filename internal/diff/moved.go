package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/profile"
)

// matching maps rows of one run to rows of the other: each key to the name of its pair.
type matching struct {
	base, changed map[string]string
	moved         int // pairs whose lines differ
	merged        int // functions or files whose places could not be distinguished
	places        bool
	together      map[string]bool // names of merged places
}

// place is a key of one run, its name in the comparison, and its bytes at the peak.
type place struct {
	key, as string
	bytes   uint64
}

// matchKeys pairs the keys of two runs. Keys with the same stable part belong together. Where that part leaves out a
// line, a function's places are paired by line if one run has all lines of the other, unless lines were inserted; else
// in their order, if both have the same number; else the pairing is unknown, and they are merged.
func matchKeys(by string, base, changed *report.Group, files *paths) matching {
	m := matching{base: make(map[string]string), changed: make(map[string]string), together: make(map[string]bool),
		places: slices.Contains(placeGroupings, by)}
	before, after := places(by, base, files.base), places(by, changed, files.changed)
	g := profile.FindGrouping(by)
	if g == nil || !g.Moved {
		for _, p := range before {
			m.base[p.key] = StableKey(by, p.as)
		}
		for _, p := range after {
			m.changed[p.key] = StableKey(by, p.as)
		}
		return m
	}
	stableBefore, stableAfter := byStableKey(g, before), byStableKey(g, after)
	for _, stable := range unionKeys(stableBefore, stableAfter) {
		m.align(stable, stableBefore[stable], stableAfter[stable])
	}
	return m
}

// places lists a group's keys.
func places(by string, g *report.Group, names map[string]string) []place {
	if g == nil {
		return nil
	}
	list := make([]place, len(g.Rows))
	for i, row := range g.Rows {
		list[i] = place{row.Key, rename(by, row.Key, names), row.PeakBytes}
	}
	return list
}

// align pairs the keys of one stable part, each side in the order of its lines.
func (m *matching) align(stable string, base, changed []place) {
	pairs, inserted := insertedLines(base, changed)
	switch {
	case inserted:
		for _, p := range changed {
			m.changed[p.key] = p.as
		}
		for i, p := range base {
			if m.base[p.key] = changed[pairs[i]].as; p.as != changed[pairs[i]].as {
				m.moved++
			}
		}
	case contains(base, changed) || contains(changed, base):
		for _, p := range base {
			m.base[p.key] = p.as
		}
		for _, p := range changed {
			m.changed[p.key] = p.as
		}
	case len(base) == len(changed):
		for i, p := range changed {
			m.changed[p.key] = p.as
			m.base[base[i].key] = p.as
			if base[i].as != p.as {
				m.moved++
			}
		}
	default:
		m.merged++
		m.together[stable] = true
		for _, p := range base {
			m.base[p.key] = stable
		}
		for _, p := range changed {
			m.changed[p.key] = stable
		}
	}
}

// mostPairs bounds the work of insertedLines for functions with many lines.
const mostPairs = 1 << 16

// insertedLines pairs the lines of a function in their order if some were inserted among them, which moved the others:
// where that explains the bytes far better than pairing equal lines does, or, if lines differ, explains all of them.
// pairs are the places of the base's lines among the changed ones.
func insertedLines(base, changed []place) (pairs []int, inserted bool) {
	n, m := len(base), len(changed)
	if n == 0 || n >= m || n*m > mostPairs {
		return nil, false
	}
	// least[i][j]: differences of the first i lines of the base, paired within the first j changed ones
	least := make([][]uint64, n+1)
	for i := range least {
		least[i] = make([]uint64, m+1)
		for j := i; j <= m; j++ {
			switch {
			case i == 0:
				continue
			case j == i:
				least[i][j] = least[i-1][j-1] + apart(base[i-1].bytes, changed[j-1].bytes)
			default:
				least[i][j] = min(least[i][j-1], least[i-1][j-1]+apart(base[i-1].bytes, changed[j-1].bytes))
			}
		}
	}
	if contains(changed, base) {
		sameLines, at := uint64(0), 0
		for _, p := range changed {
			if at < n && base[at].as == p.as {
				sameLines += apart(base[at].bytes, p.bytes)
				at++
			}
		}
		inserted = 2*least[n][m] < sameLines
	} else {
		inserted = least[n][m] == 0
	}
	pairs = make([]int, n)
	for i, j := n, m; i > 0; j-- {
		if j > i && least[i][j] == least[i][j-1] {
			continue
		}
		i--
		pairs[i] = j - 1
	}
	return pairs, inserted
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// contains reports whether every place of the second list is in the first one; both have the same order.
func contains(all, some []place) bool {
	for _, p := range all {
		if len(some) > 0 && some[0].as == p.as {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// byStableKey groups places by their stable parts, each in the order of the lines.
func byStableKey(g *profile.Grouping, list []place) map[string][]place {
	sorted := make(map[string][]place)
	for _, p := range list {
		stable := g.Stable(p.as)
		sorted[stable] = append(sorted[stable], p)
	}
	for _, of := range sorted {
		slices.SortFunc(of, func(a, b place) int {
			return cmp.Or(cmp.Compare(LineOf(a.as), LineOf(b.as)), strings.Compare(a.as, b.as))
		})
	}
	return sorted
}

// LineOf returns the line in the key of a site or a line, 0 without one.
func LineOf(key string) int {
	at := callstack.LineNumber.FindStringSubmatchIndex(key)
	if at == nil {
		return 0
	}
	line, _ := strconv.Atoi(key[at[0]+1 : at[2]])
	return line
}

// WasLine returns the line of a place in the base, if it differs from that in the new run; else 0.
func (r *Row) WasLine() int {
	if line := LineOf(r.BaseKey); line != LineOf(r.Key) {
		return line
	}
	return 0
}

// notes describe how places were matched whose lines changed.
func (m *matching) notes() []string {
	var list []string
	if m.moved > 0 {
		list = append(list, report.Count(uint64(m.moved), "site", "sites")+
			" moved to another line; matched by file and function, in the order of the lines.")
	}
	if m.merged > 0 {
		list = append(list,
			fmt.Sprintf("%s other places in the new run than in the base; they are shown together, without lines.",
				report.Count(uint64(m.merged), "function has", "functions have")))
	}
	return list
}
