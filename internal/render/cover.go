package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/callstack"
	"memtrace/internal/fold"
	"memtrace/internal/render/layout"
)

// coverOwners shortens the rows of a first screen's table to limit rows and one for the rest. If the largest rows would
// show too little of the bytes, lines are joined by function or by file, and modules and tags by their parents; depth,
// if not 0, bounds the parts of a name.
func coverOwners(by string, list []owner, limit, depth int) []owner {
	if by == "tag" {
		list = foldedTags(list)
	}
	paths, bytes := make([][]string, len(list)), make([]uint64, len(list))
	for i := range list {
		paths[i], bytes[i] = ownerPath(by, list[i].name), list[i].bytes
	}
	if depth == 0 {
		depth = math.MaxInt
	}
	if by == "category" { // few, and each informative
		limit = max(limit, enough(bytes))
	}
	var rows []owner
	for _, g := range fold.Cover(paths, bytes, limit, depth) {
		row := list[g.Members[0]]
		if len(g.Members) > 1 {
			row = sumOwners(list, g.Members)
			row.name, row.each = groupName(by, g), ""
		}
		rows = append(rows, row)
	}
	return layout.Fewer(rows, limit, func(hidden []owner) owner { return foldShort(by, hidden) })
}

// moduleDepth is how many parts the name of a module has that the sentence above the tables names, 0 if that is none or
// a whole model.
func moduleDepth(s *report.Summary) int {
	if m := s.Verdict().Module; m != nil {
		if depth := len(fold.ModulePath(m.Name)); depth > 1 {
			return depth
		}
	}
	return 0
}

// ModuleGroups names the row of a short table that contains each module, by the modules' bytes at the peak: repeated
// modules are one row, which is no deeper than the module in the sentence, and less deep if rows rows would show too
// little.
func ModuleGroups(s *report.Summary, names []string, bytes []uint64, rows int) []string {
	folds, depth := fold.Modules(names, bytes), cmp.Or(moduleDepth(s), math.MaxInt)
	paths, sums, list := make([][]string, len(folds)), make([]uint64, len(folds)), make([]string, len(names))
	for i := range folds {
		paths[i], sums[i] = fold.ModulePath(folds[i].Name), folds[i].Bytes
	}
	for _, g := range fold.Cover(paths, sums, rows, depth) {
		name := folds[g.Members[0]].Name
		if len(g.Members) > 1 {
			name = groupName("module", g)
		}
		for _, member := range g.Members {
			for _, n := range folds[member].Members {
				list[n] = name
			}
		}
	}
	return list
}

// foldedTags joins tags that differ in an index only, as those of layers do.
func foldedTags(list []owner) []owner {
	names, bytes := make([]string, len(list)), make([]uint64, len(list))
	for i := range list {
		names[i], bytes[i] = list[i].name, list[i].bytes
	}
	return sumFolds(list, fold.Modules(names, bytes), func(sum *owner, f *fold.Fold) { sum.name = f.Name })
}

// enough is how many values, most first, are four fifths of their sum.
func enough(bytes []uint64) (n int) {
	whole, shown := layout.Sum(bytes), uint64(0)
	for n < len(bytes) && shown < whole-whole/5 {
		shown += bytes[n]
		n++
	}
	return n
}

// coverBlocks is coverOwners for a table of blocks and other memory, most first, the rest of the blocks at the end.
func coverBlocks(by string, list []owner, limit int) []owner {
	blocks, beside := []owner{}, []owner{}
	for _, o := range list {
		if o.style == layout.Blocks {
			blocks = append(blocks, o)
		} else {
			beside = append(beside, o)
		}
	}
	blocks = coverOwners(by, blocks, limit, 0)
	shown := len(blocks)
	if shown > 0 && blocks[shown-1].rest {
		shown--
	}
	rows := slices.Concat(blocks[:shown], beside)
	slices.SortStableFunc(rows, func(a, b owner) int { return cmp.Compare(b.bytes, a.bytes) })
	return append(rows, blocks[shown:]...)
}

// ownerPath splits the name of a row, from the whole to its parts.
func ownerPath(by, name string) []string {
	switch by {
	case "module", "tag":
		return fold.ModulePath(name)
	case "site", "inner", "line":
		if at := callstack.LineNumber.FindStringIndex(name); at != nil && at[0] > 0 {
			return []string{name[:at[0]], name[at[1]:], name[at[0]:at[1]]}
		}
	}
	return []string{name}
}

// groupName is the row of several names with a common prefix.
func groupName(by string, g fold.Group) string {
	if by == "module" || by == "tag" {
		return strings.Join(g.Path, ".") + ".*"
	}
	return fmt.Sprintf("%s (%d lines)", strings.TrimSpace(strings.Join(g.Path, " ")), len(g.Members))
}

// sharesOf formats shares of a figure, and returns the largest row's bytes. If blocks alone add up to it, other memory,
// such as reserved memory outside of blocks, has no share.
func sharesOf(owners []owner, whole uint64) (shares []string, largest uint64) {
	var blocks uint64
	for i := range owners {
		if largest = max(largest, owners[i].bytes); owners[i].style == layout.Blocks {
			blocks += owners[i].bytes
		}
	}
	for i := range owners {
		share := ""
		if owners[i].style == layout.Blocks || blocks < whole {
			share = layout.PercentOf(owners[i].bytes, whole)
		}
		shares = append(shares, share)
	}
	return shares, largest
}

func foldShort(by string, hidden []owner) owner {
	rest := owner{name: layout.MoreRows(by, len(hidden)), style: hidden[0].style, rest: true}
	for _, o := range hidden {
		rest.bytes += o.bytes
		rest.lower = sumOfLower(rest.lower, o.lower)
	}
	return rest
}
