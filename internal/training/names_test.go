package training

import (
	"math/rand/v2"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestForetoldNames: the names of a long run's blocks are found under their allocations' numbers, in whatever order
// these are asked for, and a block that took an address over does not inherit what the one before was called.
func TestForetoldNames(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	names, want := newBlockNames(), make(map[uint64]blockName)
	live := make(map[uint64]uint64) // order number by address
	seq := uint64(0)
	apply := func(e trace.Event) {
		seq += 1 + rng.Uint64N(3)
		e.Seq, e.Level, e.Mem = seq, cuda.LevelFramework, cuda.MemoryDevice
		names.event(&e)
	}
	for seq < 5*namePage {
		addr := 0x1000 * (1 + rng.Uint64N(200))
		begun, isLive := live[addr]
		switch {
		case !isLive:
			apply(trace.Event{Kind: trace.EventAlloc, Addr: addr, Size: 0x800})
			live[addr] = seq
		case rng.IntN(3) > 0:
			apply(trace.Event{Kind: trace.EventFree, Addr: addr})
			delete(live, addr)
		default:
			name := blockName{trace.CategoryParameter + trace.Category(rng.IntN(2)), trace.StringID(1 + rng.IntN(50))}
			apply(trace.Event{Kind: trace.EventName, Addr: addr + rng.Uint64N(2)*0x100, Category: name.Category,
				Name: name.Name})
			if old := want[begun]; !KeepsName(old.Category, name.Category, false) {
				want[begun] = name
			}
		}
	}
	names.readEverything()
	if len(want) < 1000 {
		t.Fatalf("only %d blocks were named", len(want))
	}
	check := func(seq uint64) {
		wanted, named := want[seq]
		if got, ok := names.Of(seq); ok != named || got != wanted {
			t.Fatalf("allocation %d: %v, %v, want %v, %v", seq, got, ok, wanted, named)
		}
	}
	for at := range seq + namePage {
		check(at)
	}
	for range 1000 {
		check(rng.Uint64N(seq))
	}
}
