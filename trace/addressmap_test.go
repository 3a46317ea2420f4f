package trace

import (
	"math/rand/v2"
	"testing"
)

// Random ranges, some the same as before, against a list that is searched from its end.
func TestAddressMap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var m addressMap
		var list []addressRange
		at := func(address uint64) int {
			for i := len(list) - 1; i >= 0; i-- {
				if address >= list[i].start && address < list[i].end {
					return i
				}
			}
			return -1
		}
		for i := range 1 + random.IntN(60) {
			start := random.Uint64N(100)
			end := start + random.Uint64N(30) // empty ones among them
			if i > 0 && random.IntN(4) == 0 {
				start, end = list[random.IntN(i)].start, list[random.IntN(i)].end
			}
			before := -1
			for address := start; address < end; address++ {
				before = max(before, at(address))
			}
			if got := m.cover(start, end, i); got != before {
				t.Fatalf("range %d, %d to %d: covers one of module %d, want %d", i, start, end, got, before)
			}
			list = append(list, addressRange{start: start, end: end})
			for address := range uint64(140) {
				if got, want := m.at(address), at(address); got != want {
					t.Fatalf("after %d ranges address %d is of module %d, want %d", i+1, address, got, want)
				}
			}
		}
	}
}

// A hostile trace has modules and addresses without number. One that was searched module by module would take minutes
// here.
func TestManyModules(t *testing.T) {
	const modules, size = 1 << 17, 0x1000
	var tables Tables
	for i := range uint64(modules) {
		// one byte of the next one's place
		tables.AddModule(Module{ID: ModuleID(i + 1), Start: i * size, End: (i+1)*size + 1})
	}
	frames := make([]uint64, MaxFrames)
	for id := range StackID(32) {
		for i := range frames {
			frames[i] = rand.Uint64N(modules*size-1) + 2
		}
		tables.AddStack(Stack{ID: id + 1, Frames: frames})
		for i, pc := range tables.Stack(id + 1) {
			if raw := tables.RawAddress(pc); raw != frames[i] {
				t.Fatalf("address %#x is %#x in stacks, and that is %#x", frames[i], pc, raw)
			}
			if m, ok := tables.ModuleAt(pc - 1); !ok || uint64(m.ID) != (frames[i]-1)/size+1 {
				t.Fatalf("address %#x is of module %d, %v", frames[i], m.ID, ok)
			}
		}
	}
}
