package oom

import (
	"cmp"
	"slices"

	"memtrace/internal/heap"
)

// unsplitRest is the most that PyTorch's allocator leaves at the end of a block of more than a MiB rather than split it
// (c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.7.1). Smaller blocks have no such rest.
const unsplitRest = 1 << 20

// gradient is a live block that a backward pass made, or that the framework calls a gradient.
type gradient struct {
	id        uint32
	named     bool
	seq, size uint64
}

// gradientsOfActivations finds, by block, the gradients of the running backward pass that it frees again: they go with
// the size of a batch. Those that stay belong to parameters, of which each has one of its size. Where no parameter is
// known, none is told apart.
func (c *composer) gradientsOfActivations() map[uint32]bool {
	var without []uint64 // sizes of parameters whose gradient has not been found
	var made []gradient
	c.each(func(id uint32, b *heap.Block, category string) {
		switch category {
		case parameters:
			without = append(without, b.Size)
		case gradients:
			made = append(made, gradient{id, c.Replay.ElementOf(id, b) != 0, b.Seq, b.Size})
		}
	})
	if len(without) == 0 {
		return nil
	}
	slices.Sort(without)
	slices.SortFunc(made, func(a, b gradient) int { // those of activations are dropped soon, so that they are late
		if a.named != b.named {
			return map[bool]int{true: -1, false: 1}[a.named]
		}
		return cmp.Compare(a.seq, b.seq)
	})
	passing := make(map[uint32]bool)
	for _, g := range made {
		if n := ofSize(without, g.size); n >= 0 {
			without = slices.Delete(without, n, n+1)
		} else if !g.named && g.seq > c.begin {
			passing[g.id] = true
		}
	}
	return passing
}

// ofSize finds a block among sorted sizes that may hold as much as one of this size; -1: there is none.
func ofSize(sizes []uint64, size uint64) int {
	n, found := slices.BinarySearch(sizes, size)
	if found || size <= unsplitRest {
		return map[bool]int{true: n, false: -1}[found]
	}
	switch {
	case n < len(sizes) && sizes[n]-size <= unsplitRest:
		return n
	case n > 0 && size-sizes[n-1] <= unsplitRest:
		return n - 1
	}
	return -1
}
