package analyzer

import "math/bits"

// addrMap maps non-zero addresses to block numbers: open addressing with linear probing, at most half full, and deletion by shifting back, so that a
// table through which millions of addresses pass holds no tombstones. It allocates only when it grows.
type addrMap struct {
	slots []addrSlot
	used  int
	shift uint // 64 - log2(len(slots))
}

type addrSlot struct {
	addr  uint64 // 0: free
	block uint32
}

const addrMapMinSlots = 64

// home is the slot at which the search for an address begins. Multiplying by 2^64 divided by the golden ratio spreads addresses that differ only in
// their middle bits over the upper bits, which are kept.
func (m *addrMap) home(addr uint64) int { return int(addr * 0x9e3779b97f4a7c15 >> m.shift) }

func (m *addrMap) get(addr uint64) (block uint32, ok bool) {
	if m.used == 0 {
		return 0, false
	}
	mask := len(m.slots) - 1
	for i := m.home(addr); m.slots[i].addr != 0; i = (i + 1) & mask {
		if m.slots[i].addr == addr {
			return m.slots[i].block, true
		}
	}
	return 0, false
}

// put adds an address that is not in the map, or replaces its block.
func (m *addrMap) put(addr uint64, block uint32) {
	if 2*(m.used+1) > len(m.slots) {
		m.grow()
	}
	mask := len(m.slots) - 1
	i := m.home(addr)
	for ; m.slots[i].addr != 0; i = (i + 1) & mask {
		if m.slots[i].addr == addr {
			m.slots[i].block = block
			return
		}
	}
	m.slots[i] = addrSlot{addr, block}
	m.used++
}

// take removes an address and returns its block.
func (m *addrMap) take(addr uint64) (block uint32, ok bool) {
	if m.used == 0 {
		return 0, false
	}
	mask := len(m.slots) - 1
	i := m.home(addr)
	for m.slots[i].addr != addr {
		if m.slots[i].addr == 0 {
			return 0, false
		}
		i = (i + 1) & mask
	}
	block = m.slots[i].block
	m.closeGap(i, mask)
	m.used--
	return block, true
}

// closeGap empties slot i and moves back the entries behind it whose search would otherwise stop at the gap.
func (m *addrMap) closeGap(i, mask int) {
	for j := (i + 1) & mask; m.slots[j].addr != 0; j = (j + 1) & mask {
		// The entry at j may move to i only if its home does not lie cyclically in (i, j].
		if home := m.home(m.slots[j].addr); (j-home)&mask >= (j-i)&mask {
			m.slots[i] = m.slots[j]
			i = j
		}
	}
	m.slots[i] = addrSlot{}
}

func (m *addrMap) grow() {
	old := m.slots
	n := max(addrMapMinSlots, 2*len(old))
	m.slots = make([]addrSlot, n)
	m.shift = uint(64 - bits.TrailingZeros(uint(n)))
	mask := n - 1
	for _, s := range old {
		if s.addr == 0 {
			continue
		}
		i := m.home(s.addr)
		for m.slots[i].addr != 0 {
			i = (i + 1) & mask
		}
		m.slots[i] = s
	}
}

// each calls visit for every entry, in no particular order. visit must not change the map.
func (m *addrMap) each(visit func(addr uint64, block uint32)) {
	for _, s := range m.slots {
		if s.addr != 0 {
			visit(s.addr, s.block)
		}
	}
}
