package heap

import "math/bits"

// AddrMap maps non-zero addresses to block numbers: open addressing with linear probing, at most half full, and
// deletion by shifting back, so that a table through which millions of addresses pass holds no tombstones. It allocates
// only when it grows.
type AddrMap struct {
	slots []addrSlot
	used  int
	shift uint // 64 - log2(len(slots))
}

type addrSlot struct {
	addr  uint64 // 0: free
	block uint32
}

const addrMapMinSlots = 64

// home is the slot at which the search for an address begins. Multiplying by 2^64 divided by the golden ratio spreads
// addresses that differ only in their middle bits over the upper bits, which are kept.
func (m *AddrMap) home(addr uint64) int { return int(addr * 0x9e3779b97f4a7c15 >> m.shift) }

// find returns the slot of an address, or the free slot where it belongs. The map must have slots.
func (m *AddrMap) find(addr uint64) int {
	mask := len(m.slots) - 1
	i := m.home(addr)
	for m.slots[i].addr != addr && m.slots[i].addr != 0 {
		i = (i + 1) & mask
	}
	return i
}

func (m *AddrMap) Get(addr uint64) (block uint32, ok bool) {
	if m.used == 0 {
		return 0, false
	}
	s := m.slots[m.find(addr)]
	return s.block, s.addr != 0
}

// Put adds an address, or replaces its block.
func (m *AddrMap) Put(addr uint64, block uint32) {
	m.reserve()
	i := m.find(addr)
	if m.slots[i].addr == 0 {
		m.used++
	}
	m.slots[i] = addrSlot{addr, block}
}

// Take removes an address and returns its block.
func (m *AddrMap) Take(addr uint64) (block uint32, ok bool) {
	if m.used == 0 {
		return 0, false
	}
	i := m.find(addr)
	if m.slots[i].addr == 0 {
		return 0, false
	}
	block = m.slots[i].block
	m.remove(i)
	return block, true
}

// reserve makes room for one more address, so that a slot found now stays the right one for it.
func (m *AddrMap) reserve() {
	if 2*(m.used+1) > len(m.slots) {
		m.grow()
	}
}

// remove empties a slot that find returned for an address in the map.
func (m *AddrMap) remove(slot int) {
	m.closeGap(slot, len(m.slots)-1)
	m.used--
}

// closeGap empties slot i and moves back the entries behind it whose search would otherwise stop at the gap.
func (m *AddrMap) closeGap(i, mask int) {
	for j := (i + 1) & mask; m.slots[j].addr != 0; j = (j + 1) & mask {
		// The entry at j may move to i only if its home does not lie cyclically in (i, j].
		if home := m.home(m.slots[j].addr); (j-home)&mask >= (j-i)&mask {
			m.slots[i] = m.slots[j]
			i = j
		}
	}
	m.slots[i] = addrSlot{}
}

func (m *AddrMap) grow() {
	old := m.slots
	n := max(addrMapMinSlots, 2*len(old))
	m.slots = make([]addrSlot, n)
	m.shift = uint(64 - bits.TrailingZeros(uint(n)))
	for _, s := range old {
		if s.addr != 0 {
			m.slots[m.find(s.addr)] = s
		}
	}
}

// each calls visit for every entry, in no particular order. visit must not change the map.
func (m *AddrMap) each(visit func(addr uint64, block uint32)) {
	for _, s := range m.slots {
		if s.addr != 0 {
			visit(s.addr, s.block)
		}
	}
}
