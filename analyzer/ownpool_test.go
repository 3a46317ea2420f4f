package analyzer

import (
	"testing"

	"memtrace/analyzer/report"
	"memtrace/cuda"
	"memtrace/trace"
)

// poolNamed is a pool of the program's own: its name is a tag of fillTables.
const poolNamed = trace.OwnPool | 13 // "optimizer"

func (s *story) pool(handle, addr, size uint64) *story {
	return s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr,
		Size: size, API: api("memtrace_pool_alloc"), Stack: stackProgram, Handle: handle, Pool: poolNamed})
}

func (s *story) poolFree(handle, addr uint64) *story {
	return s.add(trace.Event{Kind: trace.EventFree, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr,
		API: api("memtrace_pool_free"), Handle: handle, Pool: poolNamed})
}

func (s *story) poolEnd(handle uint64) *story {
	return s.add(trace.Event{Kind: trace.EventDestroy, Level: cuda.LevelFramework, API: api("memtrace_pool_destroy"),
		Object: cuda.ObjectOwnPool, Addr: handle})
}

// torch is a block of PyTorch's, with its counters after it.
func (s *story) torch(addr, size, allocated, reserved uint64) *story {
	return s.add(trace.Event{Kind: trace.EventAlloc, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, Addr: addr,
		Size: size, API: api("reportMemoryUsageToProfiler"), Stack: stackAllocator, Allocated: allocated,
		Reserved: reserved})
}

// segment is driver memory that PyTorch takes.
func (s *story) segment(addr, size uint64) *story {
	return s.alloc(cuda.MemoryDevice, addr, size).change(func(e *trace.Event) { e.Stack = stackAllocator })
}

// TestOwnPools: what a pool of the program's own hands out is reported at the framework's level, and what it was cut
// out of is reserved. No byte is in that account twice, and PyTorch's counters are compared with its own blocks.
func TestOwnPools(t *testing.T) {
	d := cuda.MemoryDevice
	for _, test := range []struct {
		name  string
		story *story
		// live bytes of the framework's level, reserved ones, bytes of the account "other"
		live, reserved, other uint64
	}{
		{"at the chunk's beginning", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000, 100), 100, mib, 0},
		{"beside other memory", (&story{}).alloc(d, 0x100000, mib).alloc(d, 0x900000, 7*mib).pool(1, 0x180000, 100),
			100, mib, 0},
		{"freed", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000, 100).pool(1, 0x100064, 50).poolFree(1,
			0x100000), 50, mib, 0},
		{"chunk given back", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000, 100).poolFree(1,
			0x100000).free(d, 0x100000), 0, 0, 0},
		{"chunk's address used again for something else", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000,
			100).poolFree(1, 0x100000).free(d, 0x100000).alloc(d, 0x100000, 2*mib), 0, 0, 0},
		{"ends with all of its blocks", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000, 100).pool(2, 0x100064,
			50).poolEnd(1), 50, mib, 0},
		{"several chunks", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000, 100).alloc(d, 0x800000, mib).pool(1,
			0x800100, 50).pool(1, 0x100200, 30), 180, 2 * mib, 0},
		{"mapped memory", (&story{}).alloc(cuda.MemoryVMM, 7, 2*mib).mapAt(0x4000000, 2*mib, 7).pool(1, 0x4100000, 100),
			100, 2 * mib, 0},
		{"memory that is mapped later", (&story{}).alloc(d, 0x100000, mib).pool(1, 0x100000,
			10).alloc(cuda.MemoryVMM, 7, 2*mib).mapAt(0x4000000, 2*mib, 7).pool(1, 0x4100000, 100), 110, 3 * mib, 0},
		{"unknown memory", (&story{}).pool(1, 0x100000, 100), 100, 0, 0},
		{"managed memory", (&story{}).alloc(cuda.MemoryManaged, 0x100000, mib).pool(1, 0x100000, 100), 0, 0, 100},
		{"pinned memory", (&story{}).pool(1, 0x100000, 100).change(func(e *trace.Event) {
			e.Mem, e.Device = cuda.MemoryHost, -1
		}), 0, 0, 100},
		{"beside PyTorch", (&story{}).segment(0x2000000, 2*mib).torch(0x2000000, 512, 512, 2*mib).alloc(d, 0x100000,
			mib).pool(1, 0x100000, 100).torch(0x2000200, 512, 1024, 2*mib), 1124, 3 * mib, 0},
		{"over a tensor", (&story{}).segment(0x2000000, 2*mib).torch(0x2000000, mib, mib, 2*mib).pool(1, 0x2000000,
			100).pool(1, 0x2000400, 50).torch(0x2100000, 512, mib+512, 2*mib), mib + 512, 2 * mib, 150},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := test.story.summary(t, Options{Question: Question{Groupings: []string{"pool"}}})
			if live := s.Framework.LiveBytes; live != test.live || s.Devices[0].ReservedBytesCurrent != test.reserved ||
				s.Other["other"].LiveBytes != test.other {
				t.Errorf("%d bytes of %d reserved, %d elsewhere; want %d of %d, %d", live,
					s.Devices[0].ReservedBytesCurrent, s.Other["other"].LiveBytes, test.live, test.reserved, test.other)
			}
			if h := s.Health; h.AllocatedMismatches+h.ReservedMismatches+h.UnmatchedFrees+h.DisplacedBlocks > 0 {
				t.Errorf("%+v", h)
			}
		})
	}
}

// TestOwnPoolHolds: driver memory that a pool cuts up is that pool's from its beginning on, in the driver's level and
// beside the blocks, where there is other memory of the same library.
func TestOwnPoolHolds(t *testing.T) {
	s := (&story{}).alloc(cuda.MemoryDevice, 0x100000, mib).alloc(cuda.MemoryDevice, 0x900000, 7*mib).
		pool(1, 0x100000, 1000).summary(t, Options{Question: Question{Groupings: []string{"pool"}}})
	rows := make(map[string]uint64)
	for _, row := range s.Group("pool", report.LevelDriver).Rows {
		rows[row.Key] = row.PeakBytes
	}
	if len(rows) != 2 || rows["pool optimizer"] != mib || rows["(no pool)"] != 7*mib {
		t.Errorf("driver: %v", rows)
	}
	l := s.Ledger("pool")
	if l.WholeBytes != 8*mib || l.SlackBytes != mib-1000 || len(l.Rows) != 3 || l.Rows[0].Key != "pool optimizer" ||
		l.Rows[2].Owner != report.OwnerOutside || l.Rows[2].Bytes != 7*mib {
		t.Errorf("%+v", l)
	}
	if s.Versions["pool"] != "optimizer" {
		t.Errorf("%v", s.Versions)
	}
}
