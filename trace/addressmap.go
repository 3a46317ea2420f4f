package trace

import "math/rand/v2"

// addressMap says which module addresses belong to: the last one that covers them. It is a treap of ranges that do not
// overlap, so that an address costs the logarithm of the number of modules, also in a trace that has far more of them
// than any program. The zero value is empty.
type addressMap struct{ root *addressRange }

type addressRange struct {
	start, end  uint64
	module      int // its number, by order of arrival
	priority    uint32
	left, right *addressRange
}

// cover gives the addresses [start, end) to a module, and returns the last one of those that had some of them before;
// -1 none.
func (m *addressMap) cover(start, end uint64, module int) (before int) {
	if start >= end {
		return -1
	}
	below, rest := m.root.split(start)
	covered, above := rest.split(end)
	added := &addressRange{start: start, end: end, module: module, priority: rand.Uint32()}
	m.root = joinRanges(joinRanges(below, added), above)
	return covered.last()
}

// at returns the module that an address belongs to; -1 none.
func (m *addressMap) at(address uint64) (module int) {
	for r := m.root; r != nil; {
		switch {
		case address < r.start:
			r = r.left
		case address >= r.end:
			r = r.right
		default:
			return r.module
		}
	}
	return -1
}

// split parts the ranges at an address; one that lies across it is cut in two.
func (r *addressRange) split(at uint64) (below, above *addressRange) {
	switch {
	case r == nil:
		return nil, nil
	case at <= r.start:
		below, r.left = r.left.split(at)
		return below, r
	case at >= r.end:
		r.right, above = r.right.split(at)
		return r, above
	}
	cut := &addressRange{start: at, end: r.end, module: r.module, priority: rand.Uint32()}
	above = joinRanges(cut, r.right)
	r.end, r.right = at, nil
	return r, above
}

// joinRanges puts together what split parted.
func joinRanges(below, above *addressRange) *addressRange {
	switch {
	case below == nil:
		return above
	case above == nil:
		return below
	case below.priority > above.priority:
		below.right = joinRanges(below.right, above)
		return below
	}
	above.left = joinRanges(below, above.left)
	return above
}

// last returns the highest number of a module; -1 if there is none.
func (r *addressRange) last() int {
	if r == nil {
		return -1
	}
	return max(r.module, r.left.last(), r.right.last())
}
