package heap

import (
	"cmp"
	"slices"

	"memtrace/cuda"
	"memtrace/trace"
)

// Pools of the program's own. Their blocks have a space of their own, for the first block of a chunk begins where the
// chunk does. Which account a block belongs to is decided by what it was cut out of, so that no byte is counted twice
// in one:
//
//   - device memory of the driver, or nothing that is known: the framework's account. From the first such block on the
//     driver's memory is that pool's.
//   - a block of a framework, or memory of a framework's allocator: the block is counted already.
//   - managed, pinned or foreign memory: not driver memory, of which the framework's account is a part.
//
// In the latter two cases it is in AccountOther.

// Claimer is what an Observer may be besides.
type Claimer interface {
	// Claimed reports that a pool of the program's own cuts its first block out of driver memory. e is the event of
	// that block, whose Opened follows.
	Claimed(id uint32, b *Block, e *trace.Event)
}

// OfPool reports whether the block is one of a pool of the program's own.
func (b *Block) OfPool() bool { return b.state&blockPooled != 0 }

// IsClaimed reports whether a pool of the program's own cuts blocks out of this driver memory.
func (b *Block) IsClaimed() bool { return b.state&blockClaimed != 0 }

// isOwnPool reports whether an allocation or a free is one of a pool of the program's own.
func isOwnPool(e *trace.Event) bool { return e.Pool&trace.OwnPool != 0 }

// enterPool says which account a new block of a pool belongs to.
func (h *Heap) enterPool(e *trace.Event, account Account) Account {
	if account != AccountFramework {
		return account
	}
	id, r, found := h.ranges.find(h, e.Addr)
	if !found {
		return AccountFramework
	}
	b := h.blocks.at(id)
	if b.Account != AccountDriver {
		return AccountOther
	}
	if b.state&(blockClaimed|blockFramed) == 0 {
		state := blockClaimed
		if h.live[SpaceFramework].reaches(r) {
			state = blockFramed
		}
		b = h.blocks.at(id) // others were looked at
		b.state |= state
		h.blocks.put(id, b)
		if claimer, is := h.observer.(Claimer); is && b.IsClaimed() {
			claimer.Claimed(id, b, e)
		}
	}
	if b.state&blockFramed != 0 {
		return AccountOther
	}
	return AccountFramework
}

// reaches reports whether a block lies in a range of addresses, or reaches into it.
func (x *blockIndex) reaches(r *addressRange) (reaches bool) {
	x.each(func(id uint32) {
		if !reaches {
			b := x.blocks.at(id)
			reaches = b.Addr < r.addr+r.size && r.addr < b.Addr+b.Size
		}
	})
	return reaches
}

// addressRanges finds the driver's memory by an address inside of it. It is kept only once there is a pool. An entry
// whose memory has ended stays until another one takes its place.
type addressRanges struct {
	kept bool
	list []addressRange // by address, none overlaps another one
	last int            // the entry that was found last
}

// addressRange is a block of the driver's, or what a handle is mapped to. seq is the order number of the allocation or
// of the mapping.
type addressRange struct {
	addr, size, seq uint64
	block           uint32
	mapped          bool
}

func (r *addressRange) holds(addr uint64) bool { return addr-r.addr < r.size }

func (r *addressRange) isLive(h *Heap) bool {
	if r.mapped {
		m, ok := h.Mappings.get(r.addr)
		return ok && m.seq == r.seq
	}
	return h.blocks.seq(r.block) == r.seq && h.blocks.at(r.block).Account != AccountNone
}

// find returns the block that holds an address.
func (a *addressRanges) find(h *Heap, addr uint64) (id uint32, r *addressRange, ok bool) {
	if !a.kept {
		a.begin(h)
	}
	if a.last >= len(a.list) || !a.list[a.last].holds(addr) {
		i, found := slices.BinarySearchFunc(a.list, addr, func(r addressRange, addr uint64) int {
			return cmp.Compare(r.addr, addr)
		})
		if !found {
			i--
		}
		if i < 0 || !a.list[i].holds(addr) {
			return 0, nil, false
		}
		a.last = i
	}
	r = &a.list[a.last]
	return r.block, r, r.isLive(h)
}

func (a *addressRanges) begin(h *Heap) {
	a.kept = true
	h.live[SpaceDevice].each(func(id uint32) {
		b := h.blocks.at(id)
		a.list = append(a.list, addressRange{addr: b.Addr, size: b.Size, seq: b.Seq, block: id})
	})
	h.Mappings.at.each(func(addr uint64, slot uint32) {
		if m := h.Mappings.slots[slot]; m.block != 0 && !isKey(addr) {
			a.list = append(a.list, addressRange{addr: addr, size: m.size, seq: m.seq, block: m.block - 1,
				mapped: true})
		}
	})
	slices.SortFunc(a.list, func(a, b addressRange) int { return cmp.Compare(a.addr, b.addr) })
}

// add takes in memory that came to be. What its addresses meant before has ended.
func (a *addressRanges) add(r addressRange) {
	if !a.kept || r.size == 0 {
		return
	}
	from, _ := slices.BinarySearchFunc(a.list, r.addr, func(r addressRange, addr uint64) int {
		if r.addr+r.size <= addr {
			return -1
		}
		return 1
	})
	to := from
	for to < len(a.list) && a.list[to].addr < r.addr+r.size {
		to++
	}
	a.list = slices.Replace(a.list, from, to, r)
}

// addBlock takes in a new block, unless it is none of the driver's with an address.
func (a *addressRanges) addBlock(id uint32, b *Block, at Space) {
	if a.kept && at == SpaceDevice && b.Mem != cuda.MemoryVMM {
		a.add(addressRange{addr: b.Addr, size: b.Size, seq: b.Seq, block: id})
	}
}
