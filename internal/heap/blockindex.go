package heap

import (
	"math/bits"

	"memtrace/internal/offheap"
)

// blockIndex finds live blocks by their address: open addressing with linear probing, and deletion by shifting back, so
// that a table through which millions of addresses pass holds no tombstones. It allocates only when it grows. The
// addresses themselves stand in the blocks; a slot holds a block's number, plus one, and in the bits above it a part of
// the address's hash, which spares most looks at other blocks.
type blockIndex struct {
	blocks *blockTable
	slots  []uint32
	room   *offheap.Room // for many slots
	used   int
	most   int  // how many addresses the slots are good for
	shift  uint // 64 - log2(len(slots))
	idBits uint // of a slot, for the number
}

const (
	blockIndexMinSlots = 64
	// blockIndexFast is how many slots are filled by half, for speed. Of more, which no cache holds anyhow, most are
	// used.
	blockIndexFast = 1 << 16
	// blockIndexIDBits is how many bits numbers have until one needs more.
	blockIndexIDBits = 24
)

// Multiplying by 2^64 divided by the golden ratio spreads addresses that differ only in their middle bits over the
// upper bits, which choose the slot.
func blockHash(addr uint64) uint64 { return addr * 0x9e3779b97f4a7c15 }

// tag is the part of a hash that a slot holds: not of its lowest bits, which are 0 where addresses are multiples of
// 512.
func (x *blockIndex) tag(hash uint64) uint32 { return uint32(hash>>24) << x.idBits }

// find returns the slot of an address, or the free slot where it belongs, and the number of its block. The index must
// have slots.
func (x *blockIndex) find(addr uint64) (slot int, id uint32, ok bool) {
	hash := blockHash(addr)
	mask, tag, low := len(x.slots)-1, x.tag(hash), uint32(1)<<x.idBits-1
	for slot = int(hash >> x.shift); ; slot = (slot + 1) & mask {
		v := x.slots[slot]
		if v == 0 {
			return slot, 0, false
		}
		if id = v&low - 1; v&^low == tag && x.blocks.addr(id) == addr {
			return slot, id, true
		}
	}
}

func (x *blockIndex) get(addr uint64) (id uint32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	_, id, ok = x.find(addr)
	return id, ok
}

// put lets an address, which must be that of the block, lead to it, instead of to another one if it does.
func (x *blockIndex) put(addr uint64, id uint32) {
	x.reserve(id)
	slot, _, taken := x.find(addr)
	x.set(slot, addr, id)
	if !taken {
		x.used++
	}
}

// set fills a slot that find returned for the address since the last reserve.
func (x *blockIndex) set(slot int, addr uint64, id uint32) {
	x.slots[slot] = (id + 1) | x.tag(blockHash(addr))
}

// take removes an address and returns its block.
func (x *blockIndex) take(addr uint64) (id uint32, ok bool) {
	if x.used == 0 {
		return 0, false
	}
	slot, id, ok := x.find(addr)
	if ok {
		x.remove(slot)
	}
	return id, ok
}

// reserve makes room for one more address, whose block has at most that number, so that a slot found now stays the
// right one for it.
func (x *blockIndex) reserve(id uint32) {
	if x.used >= x.most || (id+1)>>x.idBits != 0 {
		x.makeRoom(id)
	}
}

// makeRoom is apart from reserve so that reserve can be inlined.
func (x *blockIndex) makeRoom(id uint32) {
	n, idBits := len(x.slots), max(blockIndexIDBits, uint(bits.Len32(id+1)))
	if x.used >= x.most {
		n = max(blockIndexMinSlots, 2*n)
	}
	if n > blockIndexFast {
		if slots, ok := offheap.Make[uint32](x.room, n); ok {
			x.fill(slots, idBits)
			return
		}
		// a heap that is short of room is given up soon: until then the room that there is must do
		full := len(x.slots) - len(x.slots)/16
		if x.room.Short() && x.used < full && idBits == x.idBits {
			x.most = full
			return
		}
	}
	x.fill(make([]uint32, n), idBits)
}

// remove empties a slot that find returned for an address in the index, and moves back the entries behind it whose
// search would otherwise stop at the gap.
func (x *blockIndex) remove(slot int) {
	mask, low, i := len(x.slots)-1, uint32(1)<<x.idBits-1, slot
	for j := (i + 1) & mask; x.slots[j] != 0; j = (j + 1) & mask {
		// The entry at j may move to i only if its home does not lie cyclically in (i, j].
		home := int(blockHash(x.blocks.addr(x.slots[j]&low-1)) >> x.shift)
		if (j-home)&mask >= (j-i)&mask {
			x.slots[i] = x.slots[j]
			i = j
		}
	}
	x.slots[i] = 0
	x.used--
}

// fill moves all addresses to other slots.
func (x *blockIndex) fill(slots []uint32, idBits uint) {
	old, low, n := x.slots, uint32(1)<<x.idBits-1, len(slots)
	x.slots, x.shift, x.idBits, x.most = slots, uint(64-bits.TrailingZeros(uint(n))), idBits, n/2
	if n > blockIndexFast {
		x.most = n / 8 * 7
	}
	mask := n - 1
	for _, v := range old {
		if v == 0 {
			continue
		}
		addr := x.blocks.addr(v&low - 1)
		i := int(blockHash(addr) >> x.shift)
		for x.slots[i] != 0 {
			i = (i + 1) & mask
		}
		x.set(i, addr, v&low-1)
	}
	offheap.Drop(x.room, old)
}

// each calls visit for every block, in no particular order. visit must not change the index.
func (x *blockIndex) each(visit func(id uint32)) {
	low := uint32(1)<<x.idBits - 1
	for _, v := range x.slots {
		if v != 0 {
			visit(v&low - 1)
		}
	}
}
