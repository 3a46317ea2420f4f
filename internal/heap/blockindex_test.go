package heap

import (
	"math/rand/v2"
	"testing"

	"memtrace/internal/offheap"
)

func (t *blockTable) place(addr uint64) uint32 {
	id := t.add()
	t.put(id, &Block{Addr: addr, Account: AccountDriver})
	return id
}

// TestBlockIndexAgreesWithMap puts, takes and looks up addresses that collide often, and compares with Go's map after
// every step.
func TestBlockIndexAgreesWithMap(t *testing.T) {
	for _, room := range []*offheap.Room{nil, offheap.NewRoom(1 << 40)} {
		rng := rand.New(rand.NewPCG(1, 2))
		blocks := newBlockTable(room, false)
		x := blockIndex{blocks: &blocks, room: room}
		want := make(map[uint64]uint32)
		for step := range 200_000 {
			addr := uint64(1+rng.IntN(300)) << 21
			switch rng.IntN(3) {
			case 0, 1:
				id := blocks.place(addr)
				x.put(addr, id)
				want[addr] = id
			default:
				got, ok := x.take(addr)
				if w, known := want[addr]; ok != known || ok && got != w {
					t.Fatalf("step %d: take(%#x) = %d, %v; want %d, %v", step, addr, got, ok, w, known)
				}
				delete(want, addr)
			}
			probe := uint64(1+rng.IntN(300)) << 21
			got, ok := x.get(probe)
			if w, known := want[probe]; ok != known || ok && got != w {
				t.Fatalf("step %d: get(%#x) = %d, %v; want %d, %v", step, probe, got, ok, w, known)
			}
			if x.used != len(want) {
				t.Fatalf("step %d: %d entries, want %d", step, x.used, len(want))
			}
		}
		x.each(func(id uint32) {
			if addr := blocks.addr(id); want[addr] != id {
				t.Errorf("each: %#x is %d, want %d", addr, id, want[addr])
			} else {
				delete(want, addr)
			}
		})
		if len(want) != 0 {
			t.Errorf("each left out %d entries", len(want))
		}
		room.Free()
	}
}

// TestBlockIndexWithHighNumbers: a number that needs more bits than a slot has for it leaves fewer for the hash, and
// finds its block all the same.
func TestBlockIndexWithHighNumbers(t *testing.T) {
	room := offheap.NewRoom(1 << 40)
	defer room.Free()
	blocks := newBlockTable(room, false)
	x := blockIndex{blocks: &blocks}
	ids := []uint32{0, 1, 7, 1<<blockIndexIDBits - 3, 1<<blockIndexIDBits - 2, 1<<blockIndexIDBits - 1,
		1 << blockIndexIDBits, 1<<blockIndexIDBits + 999}
	for i, id := range ids {
		blocks.packed.Slot(id).addr = uint64(i+1) << 20
		x.put(uint64(i+1)<<20, id)
	}
	for i, id := range ids {
		if got, ok := x.get(uint64(i+1) << 20); !ok || got != id {
			t.Errorf("get = %d, %v, want %d", got, ok, id)
		}
	}
}

// TestBlockIndexStaysSmall: addresses that come and go must not make the table grow.
func TestBlockIndexStaysSmall(t *testing.T) {
	blocks := newBlockTable(nil, false)
	x := blockIndex{blocks: &blocks}
	for i := range uint64(100_000) {
		x.put(i+1, blocks.place(i+1))
		if i >= 20 {
			x.take(i - 19)
		}
	}
	if len(x.slots) > blockIndexMinSlots {
		t.Errorf("%d slots for 20 live addresses", len(x.slots))
	}
}
