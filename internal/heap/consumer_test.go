package heap_test

import (
	"fmt"
	"math/bits"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// sizeHistogram counts the bytes that are live by size of the block, in powers of two.
type sizeHistogram [64]uint64

func (h *sizeHistogram) Opened(_ uint32, b *heap.Block, _ *trace.Event) {
	h[bits.Len64(b.Size)] += b.Size
}
func (h *sizeHistogram) Closed(_ uint32, b *heap.Block, _ *trace.Event) {
	h[bits.Len64(b.Size)] -= b.Size
}

// LateAlloc blocks were gone before their allocation was seen, refused ones never were.
func (h *sizeHistogram) LateAlloc(*heap.Block, *trace.Event) {}
func (h *sizeHistogram) Refused(*trace.Event)                {}

// An observer of one's own: what a new figure takes.
func ExampleObserver() {
	sizes := &sizeHistogram{}
	blocks := heap.NewHeap(sizes, nil)
	for i, size := range []uint64{512, 4096, 5000, 700} {
		blocks.Apply(&trace.Event{Kind: trace.EventAlloc, Seq: uint64(i + 1), Level: cuda.LevelDriver,
			Mem: cuda.MemoryDevice, Addr: 0x10000 * uint64(i+1), Size: size})
	}
	blocks.Apply(&trace.Event{Kind: trace.EventFree, Seq: 5, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice,
		Addr: 0x20000})
	for n, bytes := range sizes {
		if bytes > 0 {
			fmt.Printf("below %d: %d bytes\n", 1<<n, bytes)
		}
	}
	// Output:
	// below 1024: 1212 bytes
	// below 8192: 5000 bytes
}
