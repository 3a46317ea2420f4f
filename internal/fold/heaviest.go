package fold

import (
	"slices"
	"strconv"
	"strings"
)

const (
	// maxModuleDepth bounds the parts of a module's path that are used.
	maxModuleDepth = 48
	// heavyShare is the least part of the whole that a module worth naming holds, as a divisor.
	heavyShare = 4
	// otherRoots is the least part of all modules that models beside the heaviest one hold where that one is worth
	// naming as a whole, as a divisor: of a model that is nearly all, its name says nothing.
	otherRoots = 50
)

// Heaviest finds the part of a model that holds most including its children, by the names of modules and the bytes of
// each: the deepest module on the path from the root on which each one holds at least half of its parent's bytes, and a
// quarter of the whole, in bytes. Repeated modules count as one, "model.h.{0..11}.attn". title is "" if the path ends
// at the root of the only model that holds much. deep reports whether modules below it hold part of that.
func Heaviest(names []string, bytes []uint64, whole uint64) (title string, held uint64, deep bool) {
	all := &moduleNode{}
	for i, name := range names {
		all.add(name, bytes[i])
	}
	node, path := all, []string(nil)
	for len(path) < maxModuleDepth {
		name, below := node.heaviest()
		if below == nil || below.bytes < node.bytes-node.bytes/2 || below.bytes < whole/heavyShare {
			break
		}
		path = append(path, name)
		node = below
	}
	if len(path) == 0 || len(path) == 1 && all.bytes-node.bytes < all.bytes/otherRoots {
		return "", 0, false
	}
	return strings.Join(path, "."), node.bytes, len(node.children) > 0
}

// moduleNode is a module with everything below it.
type moduleNode struct {
	bytes    uint64
	children map[string]*moduleNode
}

// add adds the bytes of the module with a path below this one.
func (n *moduleNode) add(path string, bytes uint64) {
	n.bytes += bytes
	for _, part := range strings.SplitN(path, ".", maxModuleDepth) {
		n = n.child(part)
		n.bytes += bytes
	}
}

func (n *moduleNode) child(name string) *moduleNode {
	if n.children == nil {
		n.children = make(map[string]*moduleNode)
	}
	if n.children[name] == nil {
		n.children[name] = &moduleNode{}
	}
	return n.children[name]
}

// merge adds a module to one that represents several.
func (n *moduleNode) merge(other *moduleNode) {
	n.bytes += other.bytes
	for name, c := range other.children {
		n.child(name).merge(c)
	}
}

// heaviest returns the child that holds most, equal numbered children as one; nil without children. Of equal bytes the
// first by name.
func (n *moduleNode) heaviest() (best string, heaviest *moduleNode) {
	children := n.children
	if list := n.repeated(); len(list) > 1 {
		all := &moduleNode{}
		children = map[string]*moduleNode{"{" + IndexRanges(list) + "}": all}
		for name, c := range n.children {
			if !slices.Contains(list, name) {
				children[name] = c
				continue
			}
			all.merge(c)
		}
	}
	for name, c := range children {
		if heaviest == nil || c.bytes > heaviest.bytes || c.bytes == heaviest.bytes && name < best {
			best, heaviest = name, c
		}
	}
	return best, heaviest
}

// repeated lists the numbered children, in the order of their numbers, where at least two of them have a named child in
// common: layers of one kind, and not the different ones of an nn.Sequential.
func (n *moduleNode) repeated() []string {
	var list []string
	seen := make(map[string]bool)
	alike := false
	for name, c := range n.children {
		if _, err := strconv.ParseUint(name, 10, 32); err != nil {
			continue
		}
		list = append(list, name)
		for below := range c.children {
			if _, err := strconv.ParseUint(below, 10, 32); err != nil {
				alike = alike || seen[below]
				seen[below] = true
			}
		}
	}
	if !alike {
		return nil
	}
	slices.SortFunc(list, func(a, b string) int {
		x, _ := strconv.ParseUint(a, 10, 32)
		y, _ := strconv.ParseUint(b, 10, 32)
		return int(int64(x) - int64(y))
	})
	return list
}
