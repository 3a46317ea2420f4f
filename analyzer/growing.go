package analyzer

import (
	"cmp"
	"slices"
)

// Sizes of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.7.1): blocks are multiples of the unit,
// requests of at most a MiB have segments of their own, and segments that grow do so page by page, larger ones by
// report.GrowingPage.
const (
	mostSmall    = 1 << 20
	smallPage    = 2 << 20
	addressSpace = 1 << 46
)

// piece is a part of a growing segment: a block, free memory, or, behind and between them, addresses without memory.
type piece struct {
	start, size  uint64
	before, next *piece
	used, mapped bool
}

func (p *piece) free() bool { return p != nil && !p.used && p.mapped }

// segment is a growing segment of one stream.
type segment struct {
	page     uint64
	idle     []*piece // free memory, by size, then address
	unmapped []*piece // by address
	mapped   uint64   // bytes
}

func newSegment(page uint64) *segment {
	return &segment{page: page, unmapped: []*piece{{size: addressSpace}}}
}

func bySize(a, b *piece) int {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.start, b.start))
}

func byStart(a, b *piece) int { return cmp.Compare(a.start, b.start) }

func insert(list []*piece, p *piece, order func(a, b *piece) int) []*piece {
	n, _ := slices.BinarySearchFunc(list, p, order)
	return slices.Insert(list, n, p)
}

func remove(list []*piece, p *piece, order func(a, b *piece) int) []*piece {
	n, _ := slices.BinarySearchFunc(list, p, order)
	return slices.Delete(list, n, n+1)
}

// room is how large free memory can become: what addresses without memory follow counts as large as with them.
func (p *piece) room() uint64 {
	if p.next != nil && !p.next.mapped {
		return p.size + p.next.size
	}
	return p.size
}

// alloc returns a block: the smallest free memory that is large enough, else what the segment grows by.
func (g *segment) alloc(size uint64) *piece {
	n, _ := slices.BinarySearchFunc(g.idle, &piece{size: size}, bySize)
	var p *piece
	if n == len(g.idle) {
		p = g.grow(size)
	} else {
		for n+1 < len(g.idle) && g.idle[n+1].room() < g.idle[n].room() {
			n++
		}
		p = g.idle[n]
	}
	g.idle = remove(g.idle, p, bySize)
	if p.size > size {
		g.idle = insert(g.idle, p.split(size), bySize)
	}
	p.used = true
	return p
}

// split cuts the end off behind so many bytes and returns it.
func (p *piece) split(size uint64) *piece {
	rest := &piece{start: p.start + size, size: p.size - size, before: p, next: p.next, mapped: p.mapped}
	if p.next != nil {
		p.next.before = rest
	}
	p.next, p.size = rest, size
	return rest
}

// grow maps memory at the lowest addresses that have room, behind free memory if there is some, and returns free memory
// that is large enough.
func (g *segment) grow(size uint64) *piece {
	p := g.roomFor(size)
	if p == nil {
		return nil // addresses never run out
	}
	if !p.mapped {
		p = g.fill(p, min(size, p.size))
	}
	for p.size < size {
		p = g.fill(p.next, min(size-p.size, p.next.size))
	}
	return p
}

// roomFor returns where a block has room once memory is mapped: free memory before addresses without it, or these.
func (g *segment) roomFor(size uint64) *piece {
	for _, p := range g.unmapped {
		if p.before.free() {
			p = p.before
		}
		room := uint64(0)
		for q := p; q != nil && !q.used && room < size; q = q.next {
			room += q.size
		}
		if room >= size {
			return p
		}
	}
	return nil
}

// needs is how many bytes the segment grows by for a block; more where there is free memory between addresses without.
func (g *segment) needs(size uint64) uint64 {
	if n := len(g.idle); n > 0 && g.idle[n-1].size >= size {
		return 0
	}
	if p := g.roomFor(size); p.free() {
		size -= min(size, p.size)
	}
	return (size + g.page - 1) / g.page * g.page
}

// fill maps the first bytes of addresses without memory, in whole pages, and returns the free memory that they are part
// of then.
func (g *segment) fill(p *piece, size uint64) *piece {
	size = (size + g.page - 1) / g.page * g.page
	g.unmapped = remove(g.unmapped, p, byStart)
	if p.size > size {
		g.unmapped = insert(g.unmapped, p.split(size), byStart)
	}
	p.mapped = true
	g.mapped += size
	return g.release(p)
}

// release makes free memory of a piece, in one with what is free around it.
func (g *segment) release(p *piece) *piece {
	p.used = false
	if q := p.before; q.free() {
		g.idle = remove(g.idle, q, bySize)
		p = q.join()
	}
	if q := p.next; q.free() {
		g.idle = remove(g.idle, q, bySize)
		p = p.join()
	}
	g.idle = insert(g.idle, p, bySize)
	return p
}

// join takes the next piece in.
func (p *piece) join() *piece {
	p.size += p.next.size
	if p.next = p.next.next; p.next != nil {
		p.next.before = p
	}
	return p
}

// trim gives back the whole pages of free memory, as torch.cuda.empty_cache() does.
func (g *segment) trim() {
	for _, p := range slices.Clone(g.idle) {
		start, end := (p.start+g.page-1)/g.page*g.page, (p.start+p.size)/g.page*g.page
		if start >= end {
			continue
		}
		g.idle = remove(g.idle, p, bySize)
		if p.start < start {
			front := p
			p = p.split(start - p.start)
			g.idle = insert(g.idle, front, bySize)
		}
		if p.start+p.size > end {
			g.idle = insert(g.idle, p.split(end-p.start), bySize)
		}
		g.mapped -= p.size
		p.mapped = false
		if q := p.next; q != nil && !q.mapped {
			g.unmapped = remove(g.unmapped, q, byStart)
			p.join()
		}
		if q := p.before; q != nil && !q.mapped {
			q.join()
			continue
		}
		g.unmapped = insert(g.unmapped, p, byStart)
	}
}
