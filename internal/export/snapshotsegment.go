package export

import (
	"cmp"
	"slices"

	"memtrace/internal/heap"
)

// snapshotSegment is one contiguous range of driver memory, with its blocks.
type snapshotSegment struct {
	addr, size uint64
	first      *snapshotBlock // its stack and stream are the segment's
	handle     bool           // consists of mapped handles, which may be several
	foreign    bool
	virtual    bool // no driver memory is known below its one block
	blocks     []*snapshotBlock
}

// segments divides the driver's live memory, and assigns the framework's blocks to it. Adjacent mappings are one
// segment, as in PyTorch.
func (f *snapshotFile) segments() []snapshotSegment {
	var list []snapshotSegment
	for _, b := range byAddress(f.w.blocks[heap.AccountDriver]) {
		foreign := f.foreign(b)
		if last := len(list) - 1; last >= 0 && b.handle && b.mapped && !foreign {
			if s := &list[last]; s.handle && !s.foreign && s.first.device == b.device && s.addr+s.size == b.addr {
				s.size += b.size
				continue
			}
		}
		list = append(list, snapshotSegment{addr: b.place(), size: b.size, first: b, handle: b.handle,
			foreign: foreign})
	}
	var loose []snapshotSegment
	for _, b := range byAddress(f.w.blocks[heap.AccountFramework]) {
		if s := segmentOf(list, b); s != nil {
			s.blocks, s.foreign = append(s.blocks, b), false
		} else {
			loose = append(loose, snapshotSegment{addr: b.addr, size: b.size, first: b, virtual: true,
				blocks: []*snapshotBlock{b}})
		}
	}
	return append(list, loose...)
}

// byAddress sorts blocks by address.
func byAddress(blocks map[uint32]*snapshotBlock) []*snapshotBlock {
	list := make([]*snapshotBlock, 0, len(blocks))
	for _, b := range blocks {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b *snapshotBlock) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.place(), b.place()), cmp.Compare(a.order, b.order))
	})
	return list
}

// segmentOf returns the segment with room for a block after its present blocks, nil if there is none.
func segmentOf(list []snapshotSegment, b *snapshotBlock) *snapshotSegment {
	i, _ := slices.BinarySearchFunc(list, b, func(s snapshotSegment, b *snapshotBlock) int {
		if s.first.device == b.device && s.addr <= b.addr && b.addr < s.addr+s.size {
			return 0
		}
		return cmp.Or(cmp.Compare(s.first.device, b.device), cmp.Compare(s.addr, b.addr))
	})
	if i >= len(list) {
		return nil
	}
	s := &list[i]
	end := s.addr
	if n := len(s.blocks); n > 0 {
		end = s.blocks[n-1].addr + s.blocks[n-1].size
	}
	if s.first.device != b.device || b.addr < end || b.size > s.addr+s.size-b.addr {
		return nil
	}
	return s
}

// smallSegment is the size of segments that PyTorch cuts small blocks from.
const smallSegment = 2 << 20

// segment writes a segment with its blocks, which fill it: gaps are inactive blocks.
func (f *snapshotFile) segment(s *snapshotSegment) {
	blocks := s.blocks
	if s.foreign {
		blocks = []*snapshotBlock{{addr: s.addr, size: s.size, request: s.size, stack: s.first.stack,
			pystack: s.first.pystack}}
	}
	var used, requested uint64
	for _, b := range blocks {
		used += b.size
		requested += b.request
	}
	kind := "large"
	if s.size == smallSegment && !s.foreign {
		kind = "small"
	}
	f.p.dict(func() {
		f.p.field("device", uint64(s.first.device))
		f.p.field("address", s.addr)
		f.p.field("total_size", s.size)
		f.p.field("allocated_size", used)
		f.p.field("active_size", used)
		f.p.field("requested_size", requested)
		f.p.field("stream", s.first.stream)
		f.p.words("segment_type", kind)
		f.p.word("segment_pool_id")
		f.p.number(0)
		f.p.number(0)
		f.p.op(pickleTuple2)
		f.p.word("is_expandable")
		f.p.boolean(s.handle)
		f.frames("frames", s.first, s.foreign)
		if s.virtual {
			f.p.word(virtualKey)
			f.p.boolean(true)
		}
		f.p.word("blocks")
		f.blocks(s, blocks)
	})
}

func (f *snapshotFile) blocks(s *snapshotSegment, blocks []*snapshotBlock) {
	f.p.op(pickleList)
	add := func(item func()) {
		f.p.op(pickleMark)
		f.p.dict(item)
		f.p.op(pickleAppends)
	}
	gap := func(from, to uint64) {
		if to > from {
			add(func() {
				f.p.field("address", from)
				f.p.field("size", to-from)
				f.p.field("requested_size", 0)
				f.p.words("state", "inactive")
				f.p.word("frames")
				f.p.op(pickleList)
			})
		}
	}
	at := s.addr
	for _, b := range blocks {
		gap(at, b.addr)
		add(func() {
			f.p.field("address", b.addr)
			f.p.field("size", b.size)
			f.p.field("requested_size", b.request)
			f.p.words("state", "active_allocated")
			f.frames("frames", b, s.foreign)
			if s.foreign {
				f.p.word(foreignKey)
				f.p.boolean(true)
			}
		})
		at = b.addr + b.size
	}
	gap(at, s.addr+s.size)
}
