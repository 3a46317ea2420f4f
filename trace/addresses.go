package trace

import (
	"maps"
	"math/rand/v2"
	"slices"
)

// addressMap maps addresses to modules: the last one that covers them. It is a treap of ranges that do not overlap, so
// that an address costs the logarithm of the number of modules, also in a trace that has far more of them than any
// program. The zero value is empty.
type addressMap struct{ root *addressRange }

type addressRange struct {
	start, end  uint64
	module      int // its number, by order of arrival
	priority    uint32
	left, right *addressRange
}

// cover assigns the addresses [start, end) to a module, and returns the last one of those that had some of them before;
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

// split divides the ranges at an address; one that spans it is cut in two.
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

// last returns the highest module number, or -1.
func (r *addressRange) last() int {
	if r == nil {
		return -1
	}
	return max(r.module, r.left.last(), r.right.last())
}

// A library may be closed and another one loaded at its address, so that one code address means two things in one run.
// The recorder then gives stacks new ids, and writes the new module before them. Tables keeps the meanings apart: the
// addresses of stacks that came after such a module are moved, together with the module, to where no program has code,
// so that callers that look up an address, or cache the result, need not know. The file has the addresses as they were.

// reuseShift is the distance of moved addresses: above all that programs use. Those of the last libraries of a run that
// reused more than maxReused places are not kept apart from each other.
const (
	reuseShift = 48
	maxReused  = 1<<(64-reuseShift) - 1
)

// shiftOf returns how far a new module has to be moved: not at all, unless another one was at its addresses before.
// before is the number of the last one there; -1 none.
func (t *Tables) shiftOf(m Module, before int) uint64 {
	if before < 0 {
		return 0
	}
	old := t.modules[before]
	if old.Start == m.Start && old.End == m.End && old.Path == m.Path && old.BuildID == m.BuildID &&
		old.Size == m.Size && old.ModTime == m.ModTime {
		return t.shifts[before] // the same one again
	}
	t.reused = min(t.reused+1, maxReused)
	return t.reused << reuseShift
}

// moved returns the frames of a stack that belongs to the current modules: unchanged, unless one of them is in a module
// that was moved.
func (t *Tables) moved(frames []uint64) []uint64 {
	var list []uint64
	for i, pc := range frames {
		shift := t.shiftAt(pc - 1)
		if shift == 0 {
			continue
		}
		if list == nil {
			list = append(list, frames...)
		}
		list[i] = pc + shift
	}
	if list == nil {
		return frames
	}
	return list
}

// shiftAt returns how far the module that covers an address of the file was moved.
func (t *Tables) shiftAt(address uint64) uint64 {
	if i := t.inFile.at(address); i >= 0 {
		return t.shifts[i]
	}
	return 0
}

// ModuleAt returns the module that covers an address of a stack, such as a return address less one. Its addresses are
// those that stacks have here, see RawAddress.
func (t *Tables) ModuleAt(address uint64) (m Module, ok bool) {
	i := t.inStacks.at(address)
	if i < 0 {
		return Module{}, false
	}
	m, shift := t.modules[i], t.shifts[i]
	m.Start, m.End, m.Base = m.Start+shift, m.End+shift, m.Base+shift
	return m, true
}

// RawAddress returns the return address that the program had: another one than stacks have here only where a library
// was opened in the place of another one.
func (t *Tables) RawAddress(pc uint64) uint64 {
	if i := t.inStacks.at(pc - 1); i >= 0 {
		return pc - t.shifts[i]
	}
	return pc
}

// rawStack returns the frames of a stack as the file has them.
func (t *Tables) rawStack(id StackID) []uint64 {
	if frames, isMoved := t.unmoved[id]; isMoved {
		return frames
	}
	return t.stacks[id].frames
}

// CodeAddresses returns the distinct code addresses of all native stacks, in rising order.
func (t *Tables) CodeAddresses() []uint64 {
	distinct := make(map[uint64]struct{})
	for _, s := range t.stacks {
		for _, pc := range s.frames {
			distinct[pc] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(distinct))
}
