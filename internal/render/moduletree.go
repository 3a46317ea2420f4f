package render

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"memtrace/analyzer/report"
	"memtrace/internal/fold"
	"memtrace/internal/render/layout"
)

// The moments of modules, in the order of an iteration.
var moduleMoments = []string{"peak", "forward", "backward", "optimizer"}

// momentOf returns the memory of a module at a moment; zero lists if the moment was not reached.
func momentOf(m *report.Module, name string) (own, subtree []uint64) {
	for i := range m.Moments {
		if m.Moments[i].Moment == name {
			return m.Moments[i].Own, m.Moments[i].Subtree
		}
	}
	return nil, nil
}

// minEqual is how many siblings with names of their own and equal bytes are joined: two can be compared at a glance.
const minEqual = 3

// moduleFold is a module, or several siblings in one: its bytes are those of all of them, so that trees add up.
type moduleFold struct {
	report.Module
	count       int
	least, most uint64 // of their bytes at the peak
}

func oneModule(m report.Module) moduleFold { return moduleFold{Module: m, count: 1} }

func severalModules(name string, list []report.Module) moduleFold {
	f := moduleFold{Module: addModules(name, list), count: len(list)}
	for i := range list {
		bytes := atPeak(&list[i])
		if i == 0 {
			f.least, f.most = bytes, bytes
		}
		f.least, f.most = min(f.least, bytes), max(f.most, bytes)
	}
	return f
}

// foldLayers joins the layers of a list that are the same part of a repeated module: they have the same modules, or
// hold the same bytes at every moment. Modules with names of their own are left to mergeEqual.
func foldLayers(children []report.Module) []moduleFold {
	var list []moduleFold
	done := make([]bool, len(children))
	for i := range children {
		if done[i] {
			continue
		}
		alike := []report.Module{children[i]}
		for j := i + 1; j < len(children) && isNumber(children[i].Name); j++ {
			if !done[j] && isNumber(children[j].Name) && sameKind(&children[i], &children[j]) {
				alike, done[j] = append(alike, children[j]), true
			}
		}
		if len(alike) == 1 {
			list = append(list, oneModule(children[i]))
			continue
		}
		var numbers []string
		for _, m := range alike {
			numbers = append(numbers, m.Name)
		}
		list = append(list, severalModules("{"+fold.IndexRanges(numbers)+"}", alike))
	}
	return mergeEqual(list)
}

func isNumber(name string) bool {
	return name != "" && len(name) < 19 && strings.Trim(name, "0123456789") == ""
}

// sameKind reports whether two layers have most of their modules in common, or for layers without any, whether they
// hold the same.
func sameKind(a, b *report.Module) bool {
	named, common := 0, 0
	for i := range a.Children {
		if isNumber(a.Children[i].Name) {
			continue
		}
		named++
		if slices.ContainsFunc(b.Children, func(m report.Module) bool { return m.Name == a.Children[i].Name }) {
			common++
		}
	}
	if named > 0 {
		return 2*common > named
	}
	return sameBytes(a, b)
}

// mergeEqual joins adjacent modules with names of their own that hold the same bytes everywhere, as do their children.
func mergeEqual(children []moduleFold) []moduleFold {
	var list []moduleFold
	for i := 0; i < len(children); {
		end := i + 1
		for end < len(children) && children[i].count == 1 && children[end].count == 1 &&
			sameBytes(&children[i].Module, &children[end].Module) {
			end++
		}
		if end-i < minEqual {
			end = i + 1
			list = append(list, children[i])
		} else {
			var same []report.Module
			for _, f := range children[i:end] {
				same = append(same, f.Module)
			}
			slices.SortFunc(same, func(a, b report.Module) int { return compareNames(a.Name, b.Name) })
			list = append(list, severalModules(same[0].Name+" ... "+same[len(same)-1].Name, same))
		}
		i = end
	}
	return list
}

func sameBytes(a, b *report.Module) bool {
	if len(a.Moments) != len(b.Moments) || len(a.Children) != len(b.Children) {
		return false
	}
	for i := range a.Moments {
		if a.Moments[i].Moment != b.Moments[i].Moment || !slices.Equal(a.Moments[i].Own, b.Moments[i].Own) ||
			!slices.Equal(a.Moments[i].Subtree, b.Moments[i].Subtree) {
			return false
		}
	}
	for i := range a.Children {
		if a.Children[i].Name != b.Children[i].Name || !sameBytes(&a.Children[i], &b.Children[i]) {
			return false
		}
	}
	return true
}

// compareNames compares numbers as such: 10 comes after 9.
func compareNames(a, b string) int {
	x, xErr := strconv.Atoi(a)
	y, yErr := strconv.Atoi(b)
	if xErr == nil && yErr == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(a, b)
}

// inOrder sorts the layers of a list of modules, whose names are numbers; others stay as they are, the largest first.
func inOrder(children []report.Module) []report.Module {
	named := func(m report.Module) bool { _, err := strconv.Atoi(m.Name); return err != nil }
	if slices.ContainsFunc(children, named) {
		return children
	}
	children = slices.Clone(children)
	slices.SortFunc(children, func(a, b report.Module) int { return compareNames(a.Name, b.Name) })
	return children
}

// addModules adds trees up, their children by name.
func addModules(name string, list []report.Module) report.Module {
	sum := report.Module{Name: name}
	for _, moment := range moduleMoments {
		var owns, subtrees []uint64
		known := false
		for i := range list {
			own, subtree := momentOf(&list[i], moment)
			known = known || subtree != nil
			owns, subtrees = addLists(owns, own), addLists(subtrees, subtree)
		}
		if known {
			sum.Moments = append(sum.Moments, report.ModuleBytes{Moment: moment, Own: owns, Subtree: subtrees})
		}
	}
	var order []string
	children := make(map[string][]report.Module)
	for i := range list {
		for _, child := range list[i].Children {
			if children[child.Name] == nil {
				order = append(order, child.Name)
			}
			children[child.Name] = append(children[child.Name], child)
		}
	}
	for _, name := range order {
		sum.Children = append(sum.Children, addModules(name, children[name]))
	}
	slices.SortStableFunc(sum.Children, func(a, b report.Module) int { return cmp.Compare(atPeak(&b), atPeak(&a)) })
	return sum
}

// atPeak is the memory of a module and its children at the peak.
func atPeak(m *report.Module) uint64 {
	_, subtree := momentOf(m, "peak")
	return layout.Sum(subtree)
}

// sumModules adds several subtrees up into one without children, which counts all of it as its own.
func sumModules(name string, list []report.Module) report.Module {
	sum := report.Module{Name: name}
	for _, moment := range moduleMoments {
		var sums []uint64
		for i := range list {
			_, below := momentOf(&list[i], moment)
			sums = addLists(sums, below)
		}
		sum.Moments = append(sum.Moments, report.ModuleBytes{Moment: moment, Own: sums, Subtree: sums})
	}
	return sum
}

func addLists(sum, values []uint64) []uint64 {
	if len(sum) < len(values) {
		sum = append(sum, make([]uint64, len(values)-len(sum))...)
	}
	for i, v := range values {
		sum[i] += v
	}
	return sum
}
