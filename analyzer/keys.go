package analyzer

// maxDirectID bounds the identifiers that are looked up in a slice; larger ones, which only a damaged trace holds, go to a map.
const maxDirectID = 1 << 20

// idIndex numbers identifiers from 0 in the order in which they are first seen.
type idIndex struct {
	direct []uint32 // by identifier; number plus one
	sparse map[uint64]uint32
	ids    []uint64 // by number
}

// number returns the identifier's number; isNew says that it was given just now.
func (x *idIndex) number(id uint64) (n uint32, isNew bool) {
	if id < uint64(len(x.direct)) {
		if n := x.direct[id]; n != 0 {
			return n - 1, false
		}
	}
	return x.numberSlow(id)
}

func (x *idIndex) numberSlow(id uint64) (n uint32, isNew bool) {
	n = uint32(len(x.ids))
	if id < maxDirectID {
		if grow := int(id) + 1 - len(x.direct); grow > 0 {
			x.direct = append(x.direct, make([]uint32, grow)...)
		}
		x.direct[id] = n + 1
		x.ids = append(x.ids, id)
		return n, true
	}
	if known, ok := x.sparse[id]; ok {
		return known, false
	}
	if x.sparse == nil {
		x.sparse = make(map[uint64]uint32)
	}
	x.sparse[id] = n
	x.ids = append(x.ids, id)
	return n, true
}

// names interns strings.
type names struct {
	number map[string]uint32
	list   []string
}

func (n *names) intern(s string) uint32 {
	if k, known := n.number[s]; known {
		return k
	}
	if n.number == nil {
		n.number = make(map[string]uint32)
	}
	k := uint32(len(n.list))
	n.number[s] = k
	n.list = append(n.list, s)
	return k
}
