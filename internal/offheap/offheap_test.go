package offheap

import "testing"

func TestMakeAndFree(t *testing.T) {
	before := Bytes()
	list, err := Make[uint64](1 << 17)
	if err != nil {
		t.Fatal(err)
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
	Free(list)
	if Bytes() != before {
		t.Errorf("%d bytes are left", Bytes()-before)
	}
	if list, err := Make[uint64](1 << 57); err == nil {
		t.Errorf("%d elements in no memory", len(list))
	}
	Free[uint64](nil)
}
