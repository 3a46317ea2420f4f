package offheap

import (
	"math"
	"testing"
)

func TestMakeAndFree(t *testing.T) {
	before, r := Bytes(), NewRoom(math.MaxInt64)
	list, ok := Make[uint64](r, 1<<17)
	if !ok {
		t.Fatal("no room for 1 MiB")
	}
	for i := range list {
		if list[i] != 0 {
			t.Fatalf("element %d is %d", i, list[i])
		}
		list[i] = uint64(i)
	}
	if got := Bytes() - before; got != 1<<20 || len(list) != 1<<17 || list[1<<17-1] != 1<<17-1 {
		t.Errorf("%d elements in %d bytes", len(list), got)
	}
	if list, ok := Make[uint64](r, 1<<57); ok || !r.Short() {
		t.Errorf("%d elements in no memory", len(list))
	}
	if Drop(r, list); Bytes() != before {
		t.Errorf("%d bytes are left", Bytes()-before)
	}
	Make[byte](r, 1<<20)
	if r.Free(); Bytes() != before {
		t.Errorf("%d bytes are left of all", Bytes()-before)
	}
	Drop(r, make([]byte, 8)) // of Go's heap
}

// A column has its elements wherever they stand, also when there is room for only some outside of Go's heap.
func TestColumn(t *testing.T) {
	before := Bytes()
	for _, room := range []*Room{nil, NewRoom(math.MaxInt64), NewRoom(before + 3*8*part)} {
		const n = 6*part + 100
		c := NewColumn[uint64](room)
		for i := range uint32(n) {
			if v := c.Slot(i); *v != 0 {
				t.Fatalf("element %d is %d when it is new", i, *v)
			} else {
				*v = uint64(i) + 1
			}
		}
		for i := range uint32(n) {
			if v := *c.At(i); v != uint64(i)+1 {
				t.Fatalf("element %d is %d", i, v)
			}
		}
		if c.Len() < n {
			t.Errorf("%d elements of %d", c.Len(), n)
		}
		c = NewColumn[uint64](room)
		if *c.Slot(2*part + 7) = 5; c.Len() <= 2*part+7 || *c.At(1) != 0 {
			t.Errorf("%d elements in all after a jump", c.Len())
		}
		if room.Free(); Bytes() != before {
			t.Errorf("%d bytes are left", Bytes()-before)
		}
	}
}
