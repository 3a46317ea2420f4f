package analyzer

import (
	"math/rand/v2"
	"slices"
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// segmentStory has segments of the framework's library that come and go, plain ones and mapped ones, blocks beside
// them, and segments of another library. It returns what a plain list says of the former behind each block's event.
func segmentStory(seed uint64) (s *story, want [][]uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	s = &story{}
	plain, mapped := map[uint64]uint64{}, map[uint64]uint64{}
	note := func() {
		var list []uint64
		for addr, size := range plain {
			list = append(list, addr, size)
		}
		for addr, size := range mapped {
			list = append(list, addr, size)
		}
		slices.Sort(list)
		want = append(want, list)
	}
	before := uint64(random.IntN(50)) // that come before the framework's first block
	for n := range uint64(400) {
		addr := uint64(1+random.IntN(20)) << 24
		switch size := uint64(1+random.IntN(9)) << 20; random.IntN(4) {
		case 0:
			if plain[addr] > 0 {
				s.add(trace.Event{Kind: trace.EventFree, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: addr,
					Stack: stackAllocator})
				delete(plain, addr)
			} else {
				s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: addr,
					Size: size, Stack: stackAllocator})
				plain[addr] = size
			}
		case 1:
			if at := addr + 1<<40; mapped[at] > 0 {
				s.add(trace.Event{Kind: trace.EventUnmap, Level: cuda.LevelDriver, Addr: at, Size: mapped[at],
					Stack: stackAllocator})
				delete(mapped, at)
			} else {
				s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryVMM,
					Handle: 1000 + n, Addr: 1000 + n, Size: size, Stack: stackAllocator})
				s.add(trace.Event{Kind: trace.EventMap, Level: cuda.LevelDriver, Handle: 1000 + n, Addr: at, Size: size,
					Stack: stackAllocator, Device: -1})
				mapped[at] = size
			}
		case 2:
			s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, Addr: 1<<50 + n,
				Size: size, Stack: stackBLAS})
		default:
			if n < before {
				continue
			}
			s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: 2 + n,
				Size: 1, Stack: stackAllocator})
			note()
		}
	}
	return s, want
}

// The segments of a history are those that the framework's library held behind each of its events, and no others.
func TestSegmentsAreThoseOfAPlainList(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		s, want := segmentStory(seed)
		h := s.summary(t, Options{HistoryBlocks: 10000}).History
		if len(h.Times) != len(want) {
			t.Fatalf("seed %d: %d events, want %d", seed, len(h.Times), len(want))
		}
		for event := range h.Times {
			var got []uint64
			for _, segment := range h.Segments {
				if segment.Device != 0 {
					t.Fatalf("seed %d: a segment of device %d: the thread that maps memory need not have its device",
						seed, segment.Device)
				}
				if int(segment.Born) <= event && event < int(segment.Died) {
					got = append(got, segment.Addr, segment.Size)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want[event]) {
				t.Fatalf("seed %d, event %d: %x, want %x", seed, event, got, want[event])
			}
		}
	}
}

// Filters leave blocks out, which would look like holes: then there is no map.
func TestNoSegmentsWithFilters(t *testing.T) {
	t.Parallel()
	s, _ := segmentStory(1)
	if h := s.summary(t, Options{HistoryBlocks: 10000, Library: "c10"}).History; h != nil && len(h.Segments) > 0 {
		t.Errorf("%d segments", len(h.Segments))
	}
}
