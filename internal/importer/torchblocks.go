package importer

import (
	"math/bits"
	"sort"
	"strconv"
)

// PyTorch records requested sizes, while its counters add up blocks. blocks finds the size of the block of each request
// by cutting and joining blocks as the caching allocator does, from the addresses that it recorded.
type blocks struct {
	settings allocatorSettings
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

// allocatorSettings are those of PYTORCH_CUDA_ALLOC_CONF that decide about the size of a block.
type allocatorSettings struct {
	maxSplit  uint64     // blocks from this size on are not split; 0 no bound
	divisions [16]uint64 // of the steps from one power of two to the next, by the power of MiB; 0 and 1: none
}

// readSettings reads a snapshot's settings; older versions of PyTorch write none.
func readSettings(d *dict) (s allocatorSettings) {
	if most := integer(d.get("max_split_size")); most > 0 {
		s.maxSplit = uint64(most)
	}
	divisions, _ := d.get("roundup_power2_divisions").(*dict)
	for i := range s.divisions {
		s.divisions[i] = uint64(max(integer(divisions.get(strconv.Itoa(1<<i))), 0))
	}
	return s
}

// round is the size of the block that a request needs, as DeviceCachingAllocator::round_size computes it.
func (s *allocatorSettings) round(size uint64) uint64 {
	if size < blockUnit {
		return blockUnit
	}
	power := bits.Len64(size) - 1
	divisions := s.divisions[min(max(power-20, 0), len(s.divisions)-1)]
	if divisions <= 1 || size <= blockUnit*divisions || size > maxBlock {
		return (size + blockUnit - 1) / blockUnit * blockUnit
	}
	step := uint64(1) << power >> (bits.Len64(divisions) - 1)
	return (size + step - 1) / step * step
}

// keepsRest reports whether a block of a large segment keeps what it has beyond its size.
func (s *allocatorSettings) keepsRest(size, rest uint64) bool {
	return rest <= smallMost || s.maxSplit > 0 && size >= s.maxSplit
}

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

// addOlder adds a segment that is older than the history, with the blocks that it had then, in order. Whatever is
// between them is free; but in segments of large blocks the allocator does not split off a remainder below a minimum,
// so that a smaller gap belongs to the block before it, whose size is not known otherwise.
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
		if last := i - 1; last >= 0 && held[last].rounded && !s.small && b.settings.keepsRest(held[last].size, gap) {
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
// if unknown.
func (b *blocks) alloc(addr, request, size uint64) (block uint64, exact bool) {
	given := size > 0
	if !given {
		size = b.settings.round(request)
	}
	i := b.find(addr)
	whole, ok := b.free[addr]
	if i < 0 || !ok || whole < size {
		b.taken[addr] = size
		return size, given || i >= 0 && b.segments[i].expandable // whose blocks are always cut
	}
	b.removeFree(addr)
	rest, s := whole-size, b.segments[i]
	if given || s.small || s.expandable || !b.settings.keepsRest(size, rest) {
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
