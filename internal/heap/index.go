package heap

// MaxDirectID bounds the identifiers that are looked up in a slice; larger ones, which only a damaged trace holds, go
// to a map.
const MaxDirectID = 1 << 20

// IDIndex numbers identifiers from 0 in the order in which they are first seen.
type IDIndex struct {
	direct []uint32 // by identifier; number plus one
	sparse map[uint64]uint32
	IDs    []uint64 // by number
}

// Number returns the identifier's number; isNew reports that it was assigned by this call.
func (x *IDIndex) Number(id uint64) (n uint32, isNew bool) {
	if id < uint64(len(x.direct)) {
		if n := x.direct[id]; n != 0 {
			return n - 1, false
		}
	}
	return x.numberSlow(id)
}

func (x *IDIndex) numberSlow(id uint64) (n uint32, isNew bool) {
	n = uint32(len(x.IDs))
	if id < MaxDirectID {
		if grow := int(id) + 1 - len(x.direct); grow > 0 {
			x.direct = append(x.direct, make([]uint32, grow)...)
		}
		x.direct[id] = n + 1
		x.IDs = append(x.IDs, id)
		return n, true
	}
	if known, ok := x.sparse[id]; ok {
		return known, false
	}
	if x.sparse == nil {
		x.sparse = make(map[uint64]uint32)
	}
	x.sparse[id] = n
	x.IDs = append(x.IDs, id)
	return n, true
}

// Names interns strings.
type Names struct {
	number map[string]uint32
	List   []string
}

func (n *Names) Intern(s string) uint32 {
	if k, known := n.number[s]; known {
		return k
	}
	if n.number == nil {
		n.number = make(map[string]uint32)
	}
	k := uint32(len(n.List))
	n.number[s] = k
	n.List = append(n.List, s)
	return k
}

func ValueAt(list []uint64, i int) uint64 {
	if i < len(list) {
		return list[i]
	}
	return 0
}
