package fold

import (
	"cmp"
	"slices"
	"strings"
)

const (
	// coverShare is the least part of the whole, in percent, that a short table must show.
	coverShare = 80
	// aloneShare is the part of the whole, as a divisor, from which a name always has its own row.
	aloneShare = 4
)

// Group is one row of a short table: a name, or everything whose path has the same prefix.
type Group struct {
	Path    []string // what the members have in common
	Members []int    // places in the list
	Bytes   uint64
}

// Cover divides names, given as paths from the whole to its parts, into at most limit rows that hold most of the bytes,
// as finely as possible: by whole paths if the largest of them do, otherwise by shorter and shorter prefixes, no longer
// than depth. A name with a large part of the whole keeps its row. Groups are ordered by bytes, most first; if no
// division covers enough, the one that covers most is used.
func Cover(paths [][]string, bytes []uint64, limit, depth int) []Group {
	deepest, whole := 1, uint64(0)
	for i, path := range paths {
		deepest, whole = max(deepest, len(path)), whole+bytes[i]
	}
	var best []Group
	var covered uint64
	for d := min(deepest, depth); d > 0; d-- {
		groups := groupsOf(paths, bytes, d, whole)
		var shown uint64
		for _, g := range groups[:min(limit, len(groups))] {
			shown += g.Bytes
		}
		if best == nil || shown > covered {
			best, covered = groups, shown
		}
		if float64(shown) >= coverShare/100.0*float64(whole) {
			break
		}
	}
	return best
}

// groupsOf groups the paths by their first parts.
func groupsOf(paths [][]string, bytes []uint64, depth int, whole uint64) []Group {
	var groups []Group
	at := make(map[string]int)
	for i, path := range paths {
		if bytes[i] < whole/aloneShare {
			path = path[:min(depth, len(path))]
		}
		key := strings.Join(path, "\x00")
		g, known := at[key]
		if !known {
			g = len(groups)
			at[key], groups = g, append(groups, Group{Path: path})
		}
		groups[g].Members, groups[g].Bytes = append(groups[g].Members, i), groups[g].Bytes+bytes[i]
	}
	for i := range groups {
		if g := &groups[i]; len(g.Members) == 1 {
			g.Path = paths[g.Members[0]]
		}
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return groups
}

// ModulePath splits the name of a module at its dots, except those inside of braces: "h.{0..3}.mlp" has three parts.
func ModulePath(name string) (path []string) {
	begin, braces := 0, 0
	for i := range len(name) {
		switch name[i] {
		case '{':
			braces++
		case '}':
			braces--
		case '.':
			if braces == 0 {
				path, begin = append(path, name[begin:i]), i+1
			}
		}
	}
	return append(path, name[begin:])
}
