package analyzer

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Repeated is one module, or several that differ in one number only, as the layers of a stack do.
type Repeated struct {
	Title   string // "model.layers.{0..7}.mlp" for several
	Indices []int  // of the names
}

// FoldRepeated puts names together that differ in one number between dots. Groups come in the order of their first names.
func FoldRepeated(names []string) []Repeated {
	var order []string
	members := make(map[string][]int)
	for i, name := range names {
		pattern := foldPattern(name)
		if members[pattern] == nil {
			order = append(order, pattern)
		}
		members[pattern] = append(members[pattern], i)
	}
	var list []Repeated
	for _, pattern := range order {
		of := members[pattern]
		title, one := foldTitle(names, of)
		if one {
			list = append(list, Repeated{title, of})
			continue
		}
		for _, i := range of { // more than one number differs
			list = append(list, Repeated{names[i], []int{i}})
		}
	}
	return list
}

// foldPattern is a name with every number between dots replaced.
func foldPattern(name string) string {
	parts := strings.Split(name, ".")
	for i, part := range parts {
		if isNumber(part) {
			parts[i] = "#"
		}
	}
	return strings.Join(parts, ".")
}

func isNumber(text string) bool {
	return text != "" && len(text) < 10 && strings.Trim(text, "0123456789") == ""
}

// foldTitle writes names of one pattern as one; ok is false where they differ in several numbers.
func foldTitle(names []string, of []int) (title string, ok bool) {
	first := strings.Split(names[of[0]], ".")
	at, numbers := -1, []int{}
	for _, i := range of {
		for p, part := range strings.Split(names[i], ".") {
			switch {
			case part == first[p]:
			case at >= 0 && at != p:
				return "", false
			default:
				at = p
			}
		}
	}
	if at < 0 {
		return names[of[0]], true
	}
	for _, i := range of {
		n, _ := strconv.Atoi(strings.Split(names[i], ".")[at])
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	first[at] = numberRange(slices.Compact(numbers))
	return strings.Join(first, "."), true
}

// numberRange writes ascending numbers: {0..7}, or {0,2,5} where some are missing, and how many where they are too many for that.
func numberRange(numbers []int) string {
	low, high := numbers[0], numbers[len(numbers)-1]
	if high-low == len(numbers)-1 {
		return fmt.Sprintf("{%d..%d}", low, high)
	}
	if len(numbers) > 4 {
		return fmt.Sprintf("{%d of %d..%d}", len(numbers), low, high)
	}
	var parts []string
	for _, n := range numbers {
		parts = append(parts, strconv.Itoa(n))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// RepeatedModules are the rows of blocks of a ledger by module, repeated modules put together, most bytes first. They add up to the blocks.
func (l *Ledger) RepeatedModules() []RepeatedModule {
	var names []string
	var rows []*LedgerRow
	for i := range l.Rows {
		if r := &l.Rows[i]; r.Owner == OwnerBlocks {
			names, rows = append(names, r.Key), append(rows, r)
		}
	}
	var list []RepeatedModule
	for _, group := range FoldRepeated(names) {
		m := RepeatedModule{Title: group.Title, Count: len(group.Indices), Known: group.Title != NoModule}
		for _, i := range group.Indices {
			m.Bytes += rows[i].Bytes
			m.Largest = max(m.Largest, rows[i].Bytes)
		}
		m.Same = !slices.ContainsFunc(group.Indices, func(i int) bool { return rows[i].Bytes != rows[group.Indices[0]].Bytes })
		list = append(list, m)
	}
	slices.SortStableFunc(list, func(a, b RepeatedModule) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return list
}

// RepeatedModule is what the modules of a Repeated hold.
type RepeatedModule struct {
	Title   string
	Count   int
	Bytes   uint64 // of all together
	Largest uint64 // of one
	Same    bool   // each holds as much as the others
	Known   bool   // not NoModule
}
