package profile

import (
	"memtrace/internal/heap"
)

// RowIndex numbers the keys of a grouping, each of which may belong to several identifiers. Keys are expensive to
// compute, so all tables of a summary share it.
type RowIndex struct {
	resolver *Resolver
	By       *Grouping
	byID     map[uint64]int
	byKey    map[string]int
	IDs      []uint64 // by number: the first identifier
	Keys     []string // by number
}

// NewRowIndex returns an index of no keys yet.
func NewRowIndex(r *Resolver, by *Grouping) *RowIndex {
	return &RowIndex{resolver: r, By: by, byID: make(map[uint64]int), byKey: make(map[string]int)}
}

// Number returns the number of an identifier's key.
func (x *RowIndex) Number(id uint64) int {
	if n, known := x.byID[id]; known {
		return n
	}
	key := x.By.Key(x.resolver, id)
	n, known := x.byKey[key]
	if !known {
		n = len(x.IDs)
		x.byKey[key] = n
		x.IDs, x.Keys = append(x.IDs, id), append(x.Keys, key)
	}
	x.byID[id] = n
	return n
}

// Name returns the key and the label of an identifier's row.
func (x *RowIndex) Name(id uint64) (key, label string) {
	n := x.Number(id)
	key = x.Keys[n]
	if x.By.Label != nil {
		label = x.By.Label(x.resolver, x.IDs[n])
	}
	return key, label
}

// rowSet numbers the rows of one table, in the order of their first use.
type rowSet struct {
	*RowIndex
	rows []int32 // by number of the key: that of the row, plus one
	used int32
}

// NewRowSet returns a set of no rows yet.
func NewRowSet(x *RowIndex) *rowSet { return &rowSet{RowIndex: x} }

// Row returns the number of an identifier's row; isNew reports that it was assigned by this call.
func (t *rowSet) Row(id uint64) (n int, isNew bool) {
	row := heap.Slot(&t.rows, t.Number(id))
	if isNew = *row == 0; isNew {
		t.used++
		*row = t.used
	}
	return int(*row - 1), isNew
}
