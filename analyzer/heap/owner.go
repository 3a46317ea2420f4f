package heap

import (
	"memtrace/analyzer/meter"
	"memtrace/cuda"
	"memtrace/trace"
)

// ObjectKey names an object. Only objects without a handle, such as a device's primary context or default pool, are
// told apart by their device.
type ObjectKey struct {
	Handle uint64
	device int16
	Kind   cuda.ObjectKind
}

func KeyOf(kind cuda.ObjectKind, handle uint64, device int16) ObjectKey {
	if handle != 0 {
		device = 0
	}
	return ObjectKey{Handle: handle, device: device, Kind: kind}
}

// OwnerOf names the object with which the memory of an allocation ends; the zero key stands for none. Async, VMM,
// imported and multicast memory and reserved addresses belong to the device or to the process. Modules and libraries,
// whose variables are alike, share a kind here.
func OwnerOf(e *trace.Event) ObjectKey {
	switch {
	case e.Handle != 0 && isOwnPool(e):
		return ObjectKey{Handle: e.Handle, Kind: cuda.ObjectOwnPool}
	case e.Handle == 0 || e.Level != cuda.LevelDriver:
		return ObjectKey{}
	}
	switch e.Mem {
	case cuda.MemoryDevice, cuda.MemoryManaged, cuda.MemoryHost, cuda.MemoryRegistered, cuda.MemoryArray,
		cuda.MemoryForeign:
		return ObjectKey{Handle: e.Handle, Kind: cuda.ObjectContext}
	case cuda.MemoryGraph:
		return ObjectKey{Handle: e.Handle, Kind: cuda.ObjectGraph}
	case cuda.MemoryModule:
		return ObjectKey{Handle: e.Handle, Kind: cuda.ObjectModule}
	}
	return ObjectKey{}
}

// owners lists the live blocks of every owner. Adding, removing and finding a block are O(1) and allocate nothing once
// the lists have grown.
type owners struct {
	counted bool // blocks are only counted: those of an owner are looked for when it ends
	index   map[ObjectKey]uint32
	list    []owner
	place   []uint32 // by block id: where it stands in its owner's list
	free    []uint32 // unused owners
	last    uint32   // owner of the latest block, as neighbours mostly have the same
}

type owner struct {
	key    ObjectKey
	blocks []uint32
	count  uint32 // of blocks, where they are not listed
}

// add notes a block's owner and returns the owner's number, which begins at 1.
func (o *owners) add(id uint32, key ObjectKey) uint32 {
	n := o.number(key)
	if o.counted {
		o.list[n].count++
		return n + 1
	}
	if int(id) >= len(o.place) {
		meter.Extend(&o.place, int(id)+1)
	}
	own := &o.list[n]
	o.place[id] = uint32(len(own.blocks))
	own.blocks = append(own.blocks, id)
	return n + 1
}

func (o *owners) number(key ObjectKey) uint32 {
	if int(o.last) < len(o.list) && o.list[o.last].key == key {
		return o.last
	}
	n, known := o.index[key]
	if !known {
		n = o.unused()
		o.list[n].key = key
		if o.index == nil {
			o.index = make(map[ObjectKey]uint32)
		}
		o.index[key] = n
	}
	o.last = n
	return n
}

func (o *owners) unused() uint32 {
	if k := len(o.free); k > 0 {
		n := o.free[k-1]
		o.free = o.free[:k-1]
		return n
	}
	o.list = append(o.list, owner{})
	return uint32(len(o.list) - 1)
}

// remove takes a block out of the list of the owner whose number add returned.
func (o *owners) remove(id, number uint32) {
	own := &o.list[number-1]
	if o.counted {
		own.count--
		return
	}
	at, end := o.place[id], len(own.blocks)-1
	moved := own.blocks[end]
	own.blocks[at] = moved
	o.place[moved] = at
	own.blocks = own.blocks[:end]
}

// owned returns the live blocks of the owner at that place of the list.
func (h *Heap) owned(n uint32) []uint32 {
	own := &h.owners.list[n]
	if !h.owners.counted {
		return own.blocks
	}
	var ids []uint32
	if own.count > 0 {
		h.blocks.each(func(id uint32, b *Block) {
			if b.link == n+1 && spaceOfOwned(b) != SpaceHandle {
				ids = append(ids, id)
			}
		})
	}
	return ids
}

// forget drops an owner that has no blocks left, so that its number serves another.
func (o *owners) forget(key ObjectKey) {
	n, known := o.index[key]
	if !known || len(o.list[n].blocks) > 0 || o.list[n].count > 0 {
		return
	}
	delete(o.index, key)
	o.list[n].key = ObjectKey{}
	o.free = append(o.free, n)
}
