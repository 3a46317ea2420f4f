package heap

import (
	"cmp"
	"slices"
)

// Locator finds the block that holds an address: a framework's, or where no framework reported one the driver's.
// Addresses inside of blocks come in bursts, as names do, so they are looked up in a list that is made when blocks came
// or went since the last time.
type Locator struct {
	sorted  [2][]uint32 // block ids by address: of the framework, of the driver
	changes uint64      // blocks that had come and gone when they were made
	made    bool
}

// locatedSpaces are where addresses are looked for, blocks of frameworks first.
var locatedSpaces = [2]Space{SpaceFramework, SpaceDevice}

// Find returns the number of the block that holds an address.
func (n *Locator) Find(h *Heap, addr uint64) (id uint32, ok bool) {
	for i, at := range locatedSpaces {
		if id, ok := h.live[at].get(addr); ok {
			return id, true
		}
		if id, ok := n.inside(h, i, addr); ok {
			return id, true
		}
	}
	return 0, false
}

// inside finds the block of a space that begins below an address and holds it.
func (n *Locator) inside(h *Heap, which int, addr uint64) (id uint32, ok bool) {
	if !n.made || n.changes != h.blocks.changes {
		for i, at := range locatedSpaces {
			n.sorted[i] = blocksByAddress(h, at, n.sorted[i][:0])
		}
		n.made, n.changes = true, h.blocks.changes
	}
	list := n.sorted[which]
	i, _ := slices.BinarySearchFunc(list, addr, func(id uint32, addr uint64) int {
		if h.blocks.addr(id) <= addr {
			return -1
		}
		return 1
	})
	if i == 0 {
		return 0, false
	}
	b := h.blocks.at(list[i-1])
	return list[i-1], addr-b.Addr < b.Size
}

func blocksByAddress(h *Heap, at Space, list []uint32) []uint32 {
	list = slices.Grow(list, h.live[at].used)
	h.live[at].each(func(id uint32) { list = append(list, id) })
	slices.SortFunc(list, func(a, b uint32) int { return cmp.Compare(h.blocks.addr(a), h.blocks.addr(b)) })
	return list
}
