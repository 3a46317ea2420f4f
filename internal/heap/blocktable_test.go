package heap

import (
	"testing"
	"unsafe"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestBlockTakes32Bytes guards the memory of readers and of recorded programs.
func TestBlockTakes32Bytes(t *testing.T) {
	if size := unsafe.Sizeof(packedBlock{}); size != 32 {
		t.Errorf("a block takes %d bytes, want 32", size)
	}
}

// TestDescriptionsOfLiveBlocksStay: a program that names every iteration makes ever new descriptions. Those of live
// blocks hold; of others there are no more than a bound.
func TestDescriptionsOfLiveBlocksStay(t *testing.T) {
	blocks := newBlockTable(nil, true)
	const live = 1000
	for i := range 10 * keptDescriptions {
		id := uint32(i % live)
		if i < live {
			id = blocks.add()
		}
		blocks.put(id, &Block{Addr: 1, Size: 2, Time: int64(i), Tag: trace.StringID(i), Account: AccountDriver,
			Hidden: i%2 == 0})
		if old := uint32((i + 1) % live); i >= live {
			was := i + 1 - live
			if b := blocks.at(old); b.Tag != trace.StringID(was) || b.Hidden != (was%2 == 0) || b.Time != int64(was) {
				t.Fatalf("block %d is %+v, was put with tag %d", old, *b, was)
			}
		}
	}
	if n := len(blocks.descriptions); n > keptDescriptions {
		t.Errorf("%d descriptions of %d live blocks", n, live)
	}
}

// TestPoolInsideOfManyFrameworkBlocks: what looks at all blocks of a framework must not put another block in the place
// of the driver's, of which only a few can be looked at at a time.
func TestPoolInsideOfManyFrameworkBlocks(t *testing.T) {
	h := NewHeap(NoopObserver{}, nil)
	seq := uint64(0)
	alloc := func(level cuda.Level, addr, size uint64, pool uint32) {
		seq++
		h.Apply(&trace.Event{Kind: trace.EventAlloc, Seq: seq, Level: level, Mem: cuda.MemoryDevice, Addr: addr,
			Size: size, Pool: pool})
	}
	const first = 0x10000
	alloc(cuda.LevelDriver, first, 1<<20, 0)
	for i := range uint64(10) {
		alloc(cuda.LevelFramework, 0x900000+i<<12, 512, 0)
	}
	alloc(cuda.LevelFramework, first, 512, trace.OwnPool|1)
	id, _ := h.live[SpaceDevice].get(first)
	if b := h.Block(id); b.Addr != first || b.Size != 1<<20 || !b.IsClaimed() || b.Account != AccountDriver {
		t.Errorf("the driver's block is %+v", *b)
	}
	if n := h.Len(); n != 12 {
		t.Errorf("%d blocks", n)
	}
}
