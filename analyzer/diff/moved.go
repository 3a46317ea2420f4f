package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/profile"
	"memtrace/analyzer/report"
)

// matching says which row of one run belongs to which of the other: by the name of the pair that a key goes to.
type matching struct {
	base, changed map[string]string
	moved         int // pairs whose lines differ
	merged        int // functions or files whose places could not be told apart
}

// matchKeys pairs the keys of two runs. Keys with the same stable part belong together. Where that part leaves out a
// line, a function's places are paired as they are if one run has all lines of the other; else in their order, if there
// are as many; else nobody can say which is which, and they are taken as one.
func matchKeys(by string, base, changed *report.Group) matching {
	m := matching{base: make(map[string]string), changed: make(map[string]string)}
	g := profile.FindGrouping(by)
	if g == nil || !g.Moved {
		for _, side := range []struct {
			group *report.Group
			pairs map[string]string
		}{{base, m.base}, {changed, m.changed}} {
			for _, key := range keysOf(side.group) {
				side.pairs[key] = StableKey(by, key)
			}
		}
		return m
	}
	before, after := byStableKey(g, base), byStableKey(g, changed)
	for _, stable := range unionKeys(before, after) {
		m.align(stable, before[stable], after[stable])
	}
	return m
}

// align pairs the keys of one stable part, each side in the order of its lines.
func (m *matching) align(stable string, base, changed []string) {
	switch {
	case contains(base, changed) || contains(changed, base):
		for _, key := range base {
			m.base[key] = key
		}
		for _, key := range changed {
			m.changed[key] = key
		}
	case len(base) == len(changed):
		for i, key := range changed {
			m.changed[key] = key
			m.base[base[i]] = key
			if base[i] != key {
				m.moved++
			}
		}
	default:
		m.merged++
		for _, key := range base {
			m.base[key] = stable
		}
		for _, key := range changed {
			m.changed[key] = stable
		}
	}
}

// contains reports whether every key of the second list is in the first one; both have the same order.
func contains(all, some []string) bool {
	for _, key := range all {
		if len(some) > 0 && some[0] == key {
			some = some[1:]
		}
	}
	return len(some) == 0
}

func keysOf(g *report.Group) []string {
	if g == nil {
		return nil
	}
	keys := make([]string, len(g.Rows))
	for i, row := range g.Rows {
		keys[i] = row.Key
	}
	return keys
}

// byStableKey sorts a group's keys into their stable parts, each in the order of the lines.
func byStableKey(g *profile.Grouping, group *report.Group) map[string][]string {
	sorted := make(map[string][]string)
	for _, key := range keysOf(group) {
		stable := g.Stable(key)
		sorted[stable] = append(sorted[stable], key)
	}
	for _, keys := range sorted {
		slices.SortFunc(keys, func(a, b string) int {
			return cmp.Or(cmp.Compare(LineOf(a), LineOf(b)), strings.Compare(a, b))
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

// notes say how places were matched that do not stand where they stood.
func (m *matching) notes() []string {
	var list []string
	if m.moved > 0 {
		list = append(list, report.Count(uint64(m.moved), "place stands", "places stand")+
			" on another line than in the base; they were matched by file and function, in the order of the lines.")
	}
	if m.merged > 0 {
		list = append(list,
			fmt.Sprintf("%s other places in the new run than in the base; they are shown together, without lines.",
				report.Count(uint64(m.merged), "function has", "functions have")))
	}
	return list
}
