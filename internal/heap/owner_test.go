package heap

import (
	"testing"

	"memtrace/cuda"
	"memtrace/trace"
)

// TestOwnersAreReused: a program that makes and destroys graphs for ever needs no more owners than live at once.
func TestOwnersAreReused(t *testing.T) {
	h := NewHeap(NoopObserver{}, nil)
	for i := range uint64(10_000) {
		h.Apply(&trace.Event{Kind: trace.EventAlloc, Seq: 3*i + 1, Level: cuda.LevelDriver, Mem: cuda.MemoryGraph,
			Addr: i%50<<21 + 1<<21, Size: 1, Handle: 1000 + i})
		h.Apply(&trace.Event{Kind: trace.EventDestroy, Seq: 3*i + 2, Object: cuda.ObjectGraph, Addr: 1000 + i})
	}
	if len(h.owners.list) > 1 || len(h.owners.index) > 0 || h.blocks.count > 1 {
		t.Errorf("%d owners, %d of them known, %d blocks", len(h.owners.list), len(h.owners.index), h.blocks.count)
	}
}
