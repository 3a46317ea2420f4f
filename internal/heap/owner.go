package heap

import (
	"memtrace/cuda"
	"memtrace/internal/offheap"
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

// owners link the live blocks of every owner. Adding, removing and finding a block are O(1) and allocate nothing once
// there is room for their places.
type owners struct {
	blocks  *blockTable
	counted bool // blocks are only counted: those of an owner are looked for when it ends
	index   map[ObjectKey]uint32
	list    []owner
	places  offheap.Column[neighbours] // by block id
	free    []uint32                   // unused owners
	last    uint32                     // owner of the latest block, as neighbours mostly have the same
}

type owner struct {
	key   ObjectKey
	count uint32 // of blocks
	last  uint32 // block that was added, plus one
}

// neighbours are the blocks that were added before and after one to its owner's, plus one.
type neighbours struct{ before, after uint32 }

// add notes a block's owner and returns the owner's number, which begins at 1.
func (o *owners) add(id uint32, key ObjectKey) uint32 {
	n := o.number(key)
	own := &o.list[n]
	if own.count++; !o.counted {
		*o.places.Slot(id) = neighbours{before: own.last}
		if own.last != 0 {
			o.places.At(own.last - 1).after = id + 1
		}
		own.last = id + 1
	}
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

// remove takes a block away from the owner whose number add returned.
func (o *owners) remove(id, number uint32) {
	own := &o.list[number-1]
	if own.count--; o.counted {
		return
	}
	around := *o.places.At(id)
	if around.before != 0 {
		o.places.At(around.before - 1).after = around.after
	}
	if around.after != 0 {
		o.places.At(around.after - 1).before = around.before
	} else {
		own.last = around.before
	}
}

// each calls visit for the live blocks of the owner at that place of the list, latest first where they are linked.
// visit may end them.
func (o *owners) each(n uint32, visit func(id uint32)) {
	if own := &o.list[n]; !o.counted {
		for id := own.last; id != 0; {
			before := o.places.At(id - 1).before
			visit(id - 1)
			id = before
		}
	} else if own.count > 0 {
		o.blocks.each(func(id uint32, b *Block) {
			if b.link == n+1 && spaceOfOwned(b) != SpaceHandle {
				visit(id)
			}
		})
	}
}

// same reports whether an allocation has the owner that a live block has.
func (o *owners) same(b *Block, e *trace.Event) bool {
	if b.link == 0 {
		return OwnerOf(e).Handle == 0
	}
	return o.list[b.link-1].key == OwnerOf(e)
}

// forget drops an owner that has no blocks left, so that its number serves another.
func (o *owners) forget(key ObjectKey) {
	n, known := o.index[key]
	if !known || o.list[n].count > 0 {
		return
	}
	delete(o.index, key)
	o.list[n].key = ObjectKey{}
	o.free = append(o.free, n)
}
