package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// story builds events in order; every helper returns it, so that a test reads like what happened.
type story struct{ events []trace.Event }

func (s *story) add(e trace.Event) *story {
	e.Seq = uint64(len(s.events) + 1)
	e.Time = int64(e.Seq) * 1000
	e.Thread = 1
	s.events = append(s.events, e)
	return s
}

func (s *story) alloc(mem cuda.MemoryKind, addr, size uint64) *story {
	return s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: mem, Addr: addr, Size: size,
		API: api("cuMemAlloc_v2"), Stack: stackProgram})
}

func (s *story) free(mem cuda.MemoryKind, addr uint64) *story {
	return s.add(trace.Event{Kind: trace.EventFree, Level: cuda.LevelDriver, Mem: mem, Addr: addr,
		API: api("cuMemFree_v2"), Device: -1})
}

func (s *story) mapAt(addr, size, handle uint64) *story {
	return s.add(trace.Event{Kind: trace.EventMap, Level: cuda.LevelDriver, Addr: addr, Size: size, Handle: handle})
}

func (s *story) unmap(addr, size uint64) *story {
	return s.add(trace.Event{Kind: trace.EventUnmap, Level: cuda.LevelDriver, Addr: addr, Size: size})
}

// change edits the latest event.
func (s *story) change(edit func(*trace.Event)) *story {
	edit(&s.events[len(s.events)-1])
	return s
}

// late moves the event with the given order number to the end of the file.
func (s *story) late(seq uint64) *story {
	for i, e := range s.events {
		if e.Seq == seq {
			e.Flags |= trace.FlagLate
			s.events = append(append(s.events[:i:i], s.events[i+1:]...), e)
			break
		}
	}
	return s
}

func (s *story) summary(t *testing.T, opts Options) *report.Summary {
	t.Helper()
	src := &memorySource{events: s.events}
	fillTables(&src.tables)
	sum, err := Summarize(src, opts)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

// TestHeapRules holds one short history for every rule of the replay, with the numbers worked out by hand.
func TestHeapRules(t *testing.T) {
	d, h := cuda.MemoryDevice, cuda.MemoryVMM
	tests := []struct {
		name       string
		story      *story
		peak, live uint64
		allocs     uint64
		frees      uint64
		health     heap.HeapHealth
	}{
		{"alloc and free", (&story{}).alloc(d, 0x1000, 100).alloc(d, 0x2000, 50).free(d, 0x1000), 150, 50, 2, 1,
			heap.HeapHealth{}},
		{"peak is the first of equals", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).alloc(d, 0x1000, 100), 100,
			100, 2, 1, heap.HeapHealth{}},
		{"refused alloc", (&story{}).alloc(d, 0x1000, 100).change(func(e *trace.Event) { e.Status = 2 }), 0, 0, 0, 0,
			heap.HeapHealth{}},
		{"refused free", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).change(func(e *trace.Event) { e.Status = 1 }),
			100, 100, 1, 0,
			heap.HeapHealth{FailedFrees: 1}},
		{"free of null", (&story{}).free(d, 0), 0, 0, 0, 0, heap.HeapHealth{}},
		{"unmatched free", (&story{}).free(d, 0x1000), 0, 0, 0, 0, heap.HeapHealth{UnmatchedFrees: 1}},
		{"late free of a reused address", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).alloc(d, 0x1000, 70).late(2),
			100, 70, 2, 1,
			heap.HeapHealth{Displaced: 1, LateFrees: 1}},
		{"late free after the address was freed twice", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).alloc(d,
			0x1000, 70).free(d, 0x1000).late(2),
			100, 0, 2, 2, heap.HeapHealth{Displaced: 1, LateFrees: 1}},
		{"late free of a live block", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).alloc(d, 0x2000, 70).late(2),
			170, 70, 2, 1, heap.HeapHealth{}},
		{"late alloc, already freed", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).alloc(d, 0x2000, 70).late(1),
			70, 70, 2, 1,
			heap.HeapHealth{LateAllocs: 1}},
		{"late alloc, address reused", (&story{}).alloc(d, 0x1000, 100).free(d, 0x1000).alloc(d, 0x1000, 70).late(1),
			70, 70, 2, 1,
			heap.HeapHealth{LateAllocs: 1}},
		{"size beyond belief", (&story{}).alloc(d, 0x1000, 1<<60), 0, 0, 0, 0, heap.HeapHealth{ImplausibleSizes: 1}},
		{"managed is no driver memory", (&story{}).alloc(cuda.MemoryManaged, 0x1000, 100).free(d, 0x1000), 0, 0, 0, 0,
			heap.HeapHealth{}},
		{"host and device addresses are apart", (&story{}).alloc(d, 0x1000, 100).alloc(cuda.MemoryHost, 0x1000,
			9).free(cuda.MemoryHost, 0x1000), 100, 100,
			1, 0, heap.HeapHealth{}},
		{"handle: release first", (&story{}).alloc(h, 7, 2*mib).mapAt(0x200000, 2*mib, 7).free(h, 7).unmap(0x200000,
			2*mib), 2 * mib, 0, 1, 1, heap.HeapHealth{}},
		{"handle: still mapped", (&story{}).alloc(h, 7, 2*mib).mapAt(0x200000, 2*mib, 7).free(h, 7), 2 * mib, 2 * mib,
			1, 0, heap.HeapHealth{}},
		{"handle: unmapped but held", (&story{}).alloc(h, 7, 2*mib).mapAt(0x200000, 2*mib, 7).unmap(0x200000, 2*mib),
			2 * mib, 2 * mib, 1, 0, heap.HeapHealth{}},
		{"handle: mapped twice", (&story{}).alloc(h, 7, 2*mib).mapAt(0x200000, 2*mib, 7).mapAt(0x800000, 2*mib,
			7).free(h, 7).unmap(0x200000, 2*mib),
			2 * mib, 2 * mib, 1, 0, heap.HeapHealth{}},
		{"handle: number reused while the old memory is mapped",
			(&story{}).alloc(h, 7, 2*mib).mapAt(0x200000, 2*mib, 7).free(h, 7).alloc(h, 7, 4*mib).unmap(0x200000,
				2*mib), 6 * mib, 4 * mib, 2, 1, heap.HeapHealth{}},
		{"handle: neighbours unmapped at once", (&story{}).alloc(h, 7, 2*mib).alloc(h, 8, 2*mib).mapAt(0x200000, 2*mib,
			7).mapAt(0x400000, 2*mib, 8).
			free(h, 7).free(h, 8).unmap(0x200000, 4*mib), 4 * mib, 0, 2, 2, heap.HeapHealth{}},
		{"handle: mapping lost", (&story{}).alloc(h, 8, 2*mib).mapAt(0x400000, 2*mib, 8).free(h, 8).unmap(0x200000,
			4*mib), 2 * mib, 0, 1, 1,
			heap.HeapHealth{UnmatchedUnmaps: 1}},
		{"handle: unknown", (&story{}).mapAt(0x400000, 2*mib, 8).unmap(0x400000, 2*mib), 0, 0, 0, 0,
			heap.HeapHealth{UnmatchedMaps: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newReplayer(&trace.Tables{}, nil, nil, &Options{}, nil)
			for i := range test.story.events {
				c.event(&test.story.events[i])
			}
			got := heap.LevelOf(&c.accounts.details[heap.AccountDriver].Total)
			if got.PeakBytes != test.peak || got.LiveBytes != test.live || got.AllocCount != test.allocs ||
				got.FreeCount != test.frees {
				t.Errorf("peak %d, live %d, %d allocs, %d frees; want %d, %d, %d, %d", got.PeakBytes, got.LiveBytes,
					got.AllocCount, got.FreeCount,
					test.peak, test.live, test.allocs, test.frees)
			}
			if c.heap.Health() != test.health {
				t.Errorf("health %+v, want %+v", c.heap.Health(), test.health)
			}
		})
	}
}

// TestHostileSizesDoNotPanic feeds extreme values through every path.
func TestHostileSizesDoNotPanic(t *testing.T) {
	s := &story{}
	top := ^uint64(0)
	for i := range uint64(600) {
		s.alloc(cuda.MemoryDevice, top-i, heap.MaxBlockBytes).change(func(e *trace.Event) {
			e.Device, e.Stack, e.Tag, e.Thread = -32768, trace.StackID(top), trace.StringID(top), trace.ThreadID(top)
		})
	}
	s.alloc(cuda.MemoryVMM, 7, top).alloc(cuda.MemoryVMM, 7, mib)
	s.mapAt(top, top, 7).mapAt(1, top, 7).mapAt(2, 1, 7).unmap(top, top).unmap(1, top).unmap(1, top)
	s.add(trace.Event{Kind: 250, Level: 200, Mem: 100, Size: top})
	s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelDriver, Mem: 100, Size: 5, Addr: 77, Device: 32767,
		API: 65535})
	sum := s.summary(t, Options{Question: Question{Groupings: profile.GroupingNames()}})
	if sum.Health.ImplausibleSizes != 1 || sum.Other["other"].PeakBytes != 5 {
		t.Errorf("implausible %d, other %+v", sum.Health.ImplausibleSizes, sum.Other)
	}
}
