package export

import (
	"cmp"
	"slices"
)

// box is a frame below its callers. value is exactly what its children, small and the stacks that end here add up to.
type box struct {
	frame    int32
	value    uint64
	children []*box  // largest first
	through  []int32 // callers of this box that were left out since they only pass on: frames, outermost first
	small    uint64  // value of the calls that are too narrow to draw
	narrow   int     // how many these are
}

// flameRoot is the number of the whole in box.frame.
const flameRoot = -1

// maxBoxes bounds the picture: beyond it, wider boxes count as too narrow.
const maxBoxes = 20_000

// newFlameTree merges sorted samples into a tree. Boxes whose value is below least are left out.
func newFlameTree(list []sample, sum, least uint64) *box {
	root := &box{frame: flameRoot, value: sum}
	root.grow(list, 0, least)
	if boxes := root.values(nil); len(boxes) > maxBoxes {
		slices.SortFunc(boxes, func(a, b uint64) int { return cmp.Compare(b, a) })
		root = &box{frame: flameRoot, value: sum}
		root.grow(list, 0, boxes[maxBoxes]+1)
	}
	return root
}

// grow adds the children that samples have at a depth. The samples are sorted, so that a child's samples are adjacent.
func (b *box) grow(list []sample, depth int, least uint64) {
	for len(list) > 0 && len(list[0].frames) == depth { // these end here
		list = list[1:]
	}
	for len(list) > 0 {
		child := &box{frame: list[0].frames[depth]}
		n := 0
		for n < len(list) && list[n].frames[depth] == child.frame {
			child.value += list[n].value
			n++
		}
		if child.value < least {
			b.small += child.value
			b.narrow++
		} else {
			child.grow(list[:n], depth+1, least)
			b.children = append(b.children, child)
		}
		list = list[n:]
	}
	slices.SortStableFunc(b.children, func(a, c *box) int { return cmp.Compare(c.value, a.value) })
}

// values appends the values of all boxes below b.
func (b *box) values(list []uint64) []uint64 {
	for _, c := range b.children {
		list = c.values(append(list, c.value))
	}
	return list
}

// shorten leaves out the inner boxes of chains in which every call only passes on to the next: of such a chain its
// first and its last box stay.
func (b *box) shorten(passes func(frame int32) bool) {
	for i, child := range b.children {
		first := child
		if !passes(first.frame) {
			child.shorten(passes)
			continue
		}
		last := first
		var between []int32
		for {
			next := last.only()
			if next == nil || !passes(next.frame) {
				break
			}
			if last != first {
				between = append(between, last.frame)
			}
			last = next
		}
		if len(between) > 0 {
			last.through = between
			first.children = []*box{last}
		}
		b.children[i] = first
		last.shorten(passes)
	}
}

// only returns the one child that has the whole value of its parent, if there is one.
func (b *box) only() *box {
	if len(b.children) == 1 && b.children[0].value == b.value {
		return b.children[0]
	}
	return nil
}

// depth is the number of boxes on the longest path.
func (b *box) depth() int {
	deepest := 0
	for _, c := range b.children {
		deepest = max(deepest, c.depth())
	}
	return deepest + 1
}
