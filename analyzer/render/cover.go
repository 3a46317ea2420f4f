package render

import (
	"fmt"
	"math"
	"strings"

	"memtrace/analyzer/callstack"
	"memtrace/analyzer/fold"
	"memtrace/analyzer/render/layout"
	"memtrace/analyzer/render/phrase"
)

// coverOwners shortens the rows of a first screen's table to so many and one for the rest. Where the largest rows would
// show too little of the bytes, lines are taken together by function or by file, and modules and tags by what they are
// part of; no closer than depth parts of a name where that is not 0.
func coverOwners(by string, list []owner, limit, depth int) []owner {
	paths, bytes := make([][]string, len(list)), make([]uint64, len(list))
	for i := range list {
		paths[i], bytes[i] = ownerPath(by, list[i].name), list[i].bytes
	}
	if depth == 0 {
		depth = math.MaxInt
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

// ownerPath takes the name of a row apart, from the whole to its parts.
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

// groupName is the row of several that have a beginning in common.
func groupName(by string, g fold.Group) string {
	if by == "module" || by == "tag" {
		return strings.Join(g.Path, ".") + ".*"
	}
	return fmt.Sprintf("%s (%d lines)", strings.TrimSpace(strings.Join(g.Path, " ")), len(g.Members))
}

// sharesOf writes shares of a figure, and tells the largest row's bytes. Where blocks alone add up to it, what stands
// beside them, as memory that is reserved and in no block does, has no share.
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
	rest := owner{name: phrase.MoreRows(by, len(hidden)), style: hidden[0].style}
	for _, o := range hidden {
		rest.bytes += o.bytes
		rest.lower = sumOfLower(rest.lower, o.lower)
	}
	return rest
}
