package device

import (
	"testing"

	"memtrace/cuda"
	"memtrace/internal/heap"
)

// Handles of a segment that could not grow are given back before one is mapped: PyTorch never had them.
func TestReservedPeakWithoutFailedGrowth(t *testing.T) {
	const library, page = 1, 20 << 20
	h := Holdings{Library: library}
	create := func(n int) {
		for range n {
			h.OpenDriver(1, library, &heap.Block{Size: page, Mem: cuda.MemoryVMM}, 0)
		}
	}
	create(3)
	h.Mapped()
	create(2) // the third one is refused
	for range 2 {
		h.CloseDriver(1, library, page, 0)
	}
	if peak := h.Peak(1); peak != 3*page {
		t.Errorf("reserved %d at most, want %d", peak, 3*page)
	}
	h.OpenDriver(1, library, &heap.Block{Size: 2 << 20, Mem: cuda.MemoryDevice}, 0)
	if peak := h.Peak(1); peak != 3*page+2<<20 {
		t.Errorf("reserved %d at most with plain memory", peak)
	}
}
