package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"memtrace/analyzer"
)

// The moments of modules, in the order of an iteration.
var moduleMoments = []string{"peak", "forward", "backward", "optimizer"}

// momentOf returns what a module held at a moment; zero lists where the moment did not come.
func momentOf(m *analyzer.Module, name string) (own, subtree []uint64) {
	for i := range m.Moments {
		if m.Moments[i].Moment == name {
			return m.Moments[i].Own, m.Moments[i].Subtree
		}
	}
	return nil, nil
}

// alikeMin is how many siblings of the same bytes are worth one row: two can be compared at a glance.
const alikeMin = 3

// mergeAlike returns the children with those that hold the same bytes everywhere, and whose children do, in one: its bytes are those of all of them, so that trees add up.
func mergeAlike(children []analyzer.Module) []analyzer.Module {
	var list []analyzer.Module
	for i := 0; i < len(children); {
		same := children[i : i+1 : i+1] // not compared with itself: trees may be deep
		for j := i + 1; j < len(children) && sameBytes(&children[i], &children[j]); j++ {
			same = append(same, children[j])
		}
		if len(same) < alikeMin {
			same = same[:1]
			list = append(list, children[i])
		} else {
			list = append(list, mergeModules(same))
		}
		i += len(same)
	}
	return list
}

func sameBytes(a, b *analyzer.Module) bool {
	if len(a.Moments) != len(b.Moments) || len(a.Children) != len(b.Children) {
		return false
	}
	for i := range a.Moments {
		if a.Moments[i].Moment != b.Moments[i].Moment || !slices.Equal(a.Moments[i].Own, b.Moments[i].Own) || !slices.Equal(a.Moments[i].Subtree, b.Moments[i].Subtree) {
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

// mergeModules makes one of modules that are alike.
func mergeModules(same []analyzer.Module) analyzer.Module {
	merged := timesModule(same[0], uint64(len(same)))
	slices.SortFunc(same, func(a, b analyzer.Module) int { return compareNames(a.Name, b.Name) })
	link := ", "
	if consecutive(same) {
		link = " to "
	} else if len(same) > 2 {
		link = " ... "
	}
	merged.Name = fmt.Sprintf("%s%s%s, %d alike", same[0].Name, link, same[len(same)-1].Name, len(same))
	return merged
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

func consecutive(list []analyzer.Module) bool {
	first, err := strconv.Atoi(list[0].Name)
	for i := range list {
		if err != nil || list[i].Name != strconv.Itoa(first+i) {
			return false
		}
	}
	return true
}

// inOrder puts the layers of a list of modules, which have numbers for names, in their order; others stay as they are, the largest first.
func inOrder(children []analyzer.Module) []analyzer.Module {
	named := func(m analyzer.Module) bool { _, err := strconv.Atoi(m.Name); return err != nil }
	if slices.ContainsFunc(children, named) {
		return children
	}
	children = slices.Clone(children)
	slices.SortFunc(children, func(a, b analyzer.Module) int { return compareNames(a.Name, b.Name) })
	return children
}

// timesModule is a copy of a tree with n times its bytes.
func timesModule(m analyzer.Module, n uint64) analyzer.Module {
	times := func(values []uint64) []uint64 {
		list := make([]uint64, len(values))
		for i, v := range values {
			list[i] = v * n
		}
		return list
	}
	moments := make([]analyzer.ModuleBytes, len(m.Moments))
	for i, at := range m.Moments {
		moments[i] = analyzer.ModuleBytes{Moment: at.Moment, Own: times(at.Own), Subtree: times(at.Subtree)}
	}
	children := make([]analyzer.Module, len(m.Children))
	for i := range m.Children {
		children[i] = timesModule(m.Children[i], n)
	}
	m.Moments, m.Children = moments, children
	return m
}

// sumModules adds several subtrees up into one without children, which counts all of it as its own.
func sumModules(name string, list []analyzer.Module) analyzer.Module {
	sum := analyzer.Module{Name: name}
	for _, moment := range moduleMoments {
		var sums []uint64
		for i := range list {
			_, below := momentOf(&list[i], moment)
			sums = addLists(sums, below)
		}
		sum.Moments = append(sum.Moments, analyzer.ModuleBytes{Moment: moment, Own: sums, Subtree: sums})
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
