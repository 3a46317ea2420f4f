package importer

import "sort"

// PyTorch records what was asked for, while its counters add up blocks. blocks finds the size of the block behind each
// request by cutting and joining blocks as the caching allocator does, from the addresses that it recorded.
type blocks struct {
	segments []blockSegment // by address
	free     map[uint64]uint64
	freeEnd  map[uint64]uint64 // end -> start of the same
	taken    map[uint64]uint64 // size of blocks that are in use or whose free waits for a stream
}

type blockSegment struct {
	start, end uint64
	small      bool
	expandable bool
	known      bool // recorded from its beginning, so that its blocks are known
}

const (
	blockUnit = 512     // every block is a multiple
	smallMost = 1 << 20 // larger requests come from large segments, whose rests up to this size stay with the block
	smallSeg  = 2 << 20 // size of segments for small requests
)

func newBlocks() *blocks {
	return &blocks{free: map[uint64]uint64{}, freeEnd: map[uint64]uint64{}, taken: map[uint64]uint64{}}
}

func (b *blocks) find(addr uint64) int {
	i := sort.Search(len(b.segments), func(i int) bool { return b.segments[i].end > addr })
	if i < len(b.segments) && b.segments[i].start <= addr {
		return i
	}
	return -1
}

func (b *blocks) addSegment(s blockSegment) {
	i := sort.Search(len(b.segments), func(i int) bool { return b.segments[i].start >= s.start })
	b.segments = append(b.segments, blockSegment{})
	copy(b.segments[i+1:], b.segments[i:])
	b.segments[i] = s
	if s.known {
		b.addFree(s.start, s.end-s.start)
	}
}

func (b *blocks) removeSegment(addr uint64) {
	if i := b.find(addr); i >= 0 {
		s := b.segments[i]
		b.segments = append(b.segments[:i], b.segments[i+1:]...)
		if b.free[s.start] == s.end-s.start {
			b.removeFree(s.start)
		}
	}
}

func (b *blocks) addFree(start, size uint64) { b.free[start], b.freeEnd[start+size] = size, start }

func (b *blocks) removeFree(start uint64) {
	delete(b.freeEnd, start+b.free[start])
	delete(b.free, start)
}

func round(size uint64) uint64 { return max((size+blockUnit-1)/blockUnit*blockUnit, blockUnit) }

// addOlder adds a segment that is older than the history, with the blocks that it had then, in order. Whatever lies
// between them is free; but in segments of large blocks no free piece is as small as what is not worth splitting
// off, so
// that such a one belongs to the block before it, whose size is not known otherwise.
func (b *blocks) addOlder(s blockSegment, held []block) {
	known := s.known
	s.known = false
	b.addSegment(s)
	if !known {
		return
	}
	b.segments[b.find(s.start)].known = true
	at := s.start
	for i := range len(held) + 1 {
		begin := s.end
		if i < len(held) {
			begin = held[i].addr
		}
		gap := begin - min(at, begin)
		if last := i - 1; last >= 0 && held[last].rounded && !s.small && gap <= smallMost {
			held[last].size += gap
		} else if gap >= blockUnit {
			b.addFree(at, gap)
		}
		if i < len(held) {
			at = max(at, begin) + held[i].size
		}
	}
}

// alloc takes a block in use and returns its size; exact is false where the segment's blocks are not known. size is 0
// where nothing says it.
func (b *blocks) alloc(addr, request, size uint64) (block uint64, exact bool) {
	given := size > 0
	if !given {
		size = round(request)
	}
	i := b.find(addr)
	whole, ok := b.free[addr]
	if i < 0 || !ok || whole < size {
		b.taken[addr] = size
		return size, given || i >= 0 && b.segments[i].expandable // whose blocks are always cut
	}
	b.removeFree(addr)
	rest, s := whole-size, b.segments[i]
	if given || s.small || s.expandable || rest > smallMost {
		if rest >= blockUnit {
			b.addFree(addr+size, rest)
		}
	} else {
		size = whole
	}
	b.taken[addr] = size
	return size, true
}

// release joins a block with its free neighbours in the same segment.
func (b *blocks) release(addr uint64) {
	size, ok := b.taken[addr]
	delete(b.taken, addr)
	i := b.find(addr)
	if !ok || i < 0 || !b.segments[i].known {
		return
	}
	start, end := addr, addr+size
	if from, ok := b.freeEnd[start]; ok && start > b.segments[i].start {
		b.removeFree(from)
		start = from
	}
	if more, ok := b.free[end]; ok && end < b.segments[i].end {
		b.removeFree(end)
		end += more
	}
	b.addFree(start, end-start)
}
