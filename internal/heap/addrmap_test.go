package heap

import (
	"math/rand/v2"
	"testing"
)

// TestAddrMapAgreesWithMap puts, takes and looks up addresses that collide often, and compares with Go's map after
// every step.
func TestAddrMapAgreesWithMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var m AddrMap
	want := make(map[uint64]uint32)
	for step := range 200_000 {
		addr := uint64(1+rng.IntN(300)) << 21
		switch rng.IntN(3) {
		case 0, 1:
			m.Put(addr, uint32(step))
			want[addr] = uint32(step)
		default:
			got, ok := m.Take(addr)
			if w, known := want[addr]; ok != known || got != w {
				t.Fatalf("step %d: take(%#x) = %d, %v; want %d, %v", step, addr, got, ok, w, known)
			}
			delete(want, addr)
		}
		probe := uint64(1+rng.IntN(300)) << 21
		got, ok := m.Get(probe)
		if w, known := want[probe]; ok != known || got != w {
			t.Fatalf("step %d: get(%#x) = %d, %v; want %d, %v", step, probe, got, ok, w, known)
		}
		if m.used != len(want) {
			t.Fatalf("step %d: %d entries, want %d", step, m.used, len(want))
		}
	}
	m.each(func(addr uint64, block uint32) {
		if want[addr] != block {
			t.Errorf("each: %#x is %d, want %d", addr, block, want[addr])
		}
		delete(want, addr)
	})
	if len(want) != 0 {
		t.Errorf("each left out %d entries", len(want))
	}
}

// TestAddrMapStaysSmall: addresses that come and go must not make the table grow.
func TestAddrMapStaysSmall(t *testing.T) {
	var m AddrMap
	for i := range uint64(100_000) {
		m.Put(i+1, 0)
		if i >= 20 {
			m.Take(i - 19)
		}
	}
	if len(m.slots) > addrMapMinSlots {
		t.Errorf("%d slots for 20 live addresses", len(m.slots))
	}
}
