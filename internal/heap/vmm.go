package heap

import "memtrace/trace"

// mapping is a range of addresses behind which the memory of a VMM handle stands.
type mapping struct {
	size  uint64
	seq   uint64
	block uint32 // plus one; 0: the handle was never seen
	next  uint32 // while unused: the next unused mapping, plus one
}

// Mappings are the live mappings of VMM handles, by start address.
type Mappings struct {
	blocks *blockTable
	at     AddrMap
	slots  []mapping
	free   uint32 // first unused slot, plus one
}

func (m *Mappings) add(addr uint64, v mapping) {
	id := uint32(len(m.slots))
	if m.free != 0 {
		id = m.free - 1
		m.free = m.slots[id].next
		m.slots[id] = v
	} else {
		m.slots = append(m.slots, v)
	}
	m.at.Put(addr, id)
}

func (m *Mappings) get(addr uint64) (mapping, bool) {
	id, ok := m.at.Get(addr)
	if !ok {
		return mapping{}, false
	}
	return m.slots[id], true
}

func (m *Mappings) remove(addr uint64) (mapping, bool) {
	id, ok := m.at.Take(addr)
	if !ok {
		return mapping{}, false
	}
	v := m.slots[id]
	m.slots[id] = mapping{next: m.free}
	m.free = id + 1
	return v, true
}

// starts returns the start addresses inside [addr, addr+size).
func (m *Mappings) starts(addr, size uint64) []uint64 {
	var found []uint64
	m.at.each(func(start uint64, _ uint32) {
		if start >= addr && start-addr < size {
			found = append(found, start)
		}
	})
	return found
}

// Each calls visit for every range of addresses behind which the memory of a known handle stands.
func (m *Mappings) Each(visit func(addr, size uint64, b *Block)) {
	var b Block
	m.at.each(func(addr uint64, slot uint32) {
		if v := m.slots[slot]; v.block != 0 && !isKey(addr) {
			m.blocks.load(v.block-1, &b)
			visit(addr, v.size, &b)
		}
	})
}

// Size returns the size of the mapping at an address and the order number of its event.
func (m *Mappings) Size(addr uint64) (size, seq uint64, ok bool) {
	v, ok := m.get(addr)
	return v.size, v.seq, ok
}

// Behind returns the memory that stands behind the mapping at an address, nil if its handle was never seen.
func (m *Mappings) Behind(addr uint64) *Block {
	if v, known := m.get(addr); known && v.block != 0 {
		return m.blocks.at(v.block - 1)
	}
	return nil
}

// isKey reports whether a mapping's place is a key instead of an address: a tile of a sparse array, a binding of a
// multicast object. Tiles are mapped over without being unmapped, and unmapped without having been mapped.
func isKey(addr uint64) bool { return addr>>63 != 0 }

func (h *Heap) mapHandle(e *trace.Event) {
	if e.Status != 0 || e.Addr == 0 {
		return
	}
	if old, taken := h.Mappings.get(e.Addr); taken {
		if old.seq > e.Seq {
			return // late: this mapping had ended before the live one began
		}
		if !isKey(e.Addr) {
			h.health.Displaced++
		}
		h.endMapping(e.Addr, e)
	}
	v := mapping{size: e.Size, seq: e.Seq}
	if id, known := h.live[SpaceHandle].get(e.Handle); known {
		b := h.blocks.at(id)
		b.link++
		h.blocks.put(id, b)
		v.block = id + 1
		h.size(id, e)
	} else {
		h.health.UnmatchedMaps++
	}
	h.Mappings.add(e.Addr, v)
	if v.block != 0 && !isKey(e.Addr) {
		h.ranges.add(addressRange{addr: e.Addr, size: e.Size, seq: e.Seq, block: v.block - 1, mapped: true})
	}
}

// size opens the block of an imported handle, whose size its first mapping tells.
func (h *Heap) size(id uint32, e *trace.Event) {
	b := h.blocks.at(id)
	if b.state&blockUnsized == 0 || e.Size == 0 { // the mapping of a tile says nothing
		return
	}
	if e.Size > MaxBlockBytes {
		h.health.ImplausibleSizes++
		return
	}
	b.Size, b.Time = e.Size, e.Time
	b.state &^= blockUnsized
	h.observer.Opened(id, b, e)
	h.blocks.put(id, b)
}

// unmap ends every mapping in the event's range: CUDA lets one call undo several neighbouring mappings.
func (h *Heap) unmap(e *trace.Event) {
	if e.Status != 0 || e.Addr == 0 {
		return
	}
	for at, left := e.Addr, e.Size; ; {
		v, known := h.Mappings.get(at)
		if !known {
			h.unmapScattered(at, left, e)
			return
		}
		h.endMapping(at, e)
		if v.size == 0 || v.size >= left {
			return
		}
		at, left = at+v.size, left-v.size
	}
}

// unmapScattered ends the mappings in a range with holes, which are those whose events were lost.
func (h *Heap) unmapScattered(addr, size uint64, e *trace.Event) {
	if isKey(addr) {
		return
	}
	h.health.UnmatchedUnmaps++
	for _, start := range h.Mappings.starts(addr, size) {
		h.endMapping(start, e)
	}
}

// endMapping ends the mapping at addr, and with it the memory behind it if the handle is released and this was its last
// mapping.
func (h *Heap) endMapping(addr uint64, e *trace.Event) {
	v, _ := h.Mappings.get(addr)
	if v.seq > e.Seq {
		h.health.LateFrees++
		return
	}
	h.Mappings.remove(addr)
	if v.block == 0 {
		return
	}
	b := h.blocks.at(v.block - 1)
	b.link--
	h.blocks.put(v.block-1, b)
	if b.state&blockReleased != 0 && b.link == 0 {
		if id, ok := h.releasedHandles.get(b.Addr); ok && id == v.block-1 {
			h.releasedHandles.take(b.Addr)
		}
		h.end(v.block-1, e)
	}
}
