package analyzer

import (
	"fmt"
	"testing"

	"memtrace/internal/heap"
	"memtrace/trace"
)

// witness writes down what a heap tells, as far as a packed heap knows it.
type witness struct{ announced []string }

func (w *witness) witnessed(what string, b *heap.Block, e *trace.Event) {
	w.announced = append(w.announced, fmt.Sprintf("%s at %d: %#x %d %d stack %d %d tag %d thread %d %v device %d %v %v",
		what,
		e.Seq, b.Addr, b.Size, b.Seq, b.Stack, b.PyStack, b.Tag, b.Thread, b.Call,
		b.Device, b.Account, b.Mem))
}

func (w *witness) Opened(_ uint32, b *heap.Block, e *trace.Event) { w.witnessed("opened", b, e) }
func (w *witness) Closed(_ uint32, b *heap.Block, e *trace.Event) { w.witnessed("closed", b, e) }
func (w *witness) LateAlloc(b *heap.Block, e *trace.Event)        { w.witnessed("elapsed", b, e) }
func (w *witness) Refused(e *trace.Event) {
	w.announced = append(w.announced, fmt.Sprint("refused ", e.Seq))
}

// The replay inside a recorded program tells what a reader's tells, whatever a program, a driver and a recorder do.
func TestPackedHeapTellsTheSame(t *testing.T) {
	for seed := range uint64(30) {
		shape := streamShape{events: 2000, wild: seed%2 == 1}
		if seed%3 == 1 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		plain, packed := &witness{}, &witness{}
		h, p := heap.NewHeap(plain, nil), heap.NewPackedHeap(packed, 1<<40)
		for _, e := range randomStream(seed, shape) {
			h.Apply(&e)
			p.Apply(&e)
			if h.Health() != p.Health() || h.Len() != p.Len() {
				t.Fatalf("seed %d, event %d: %+v, %d blocks; packed %+v, %d blocks", seed, e.Seq, h.Health(), h.Len(),
					p.Health(), p.Len())
			}
		}
		announced := make(map[string]int) // which block of an owner ends first is not said
		for i := range plain.announced {
			announced[plain.announced[i]]++
		}
		for _, text := range packed.announced {
			if announced[text]--; announced[text] < 0 {
				t.Fatalf("seed %d: only the packed heap tells: %s", seed, text)
			}
		}
		if len(plain.announced) != len(packed.announced) || len(plain.announced) == 0 {
			t.Fatalf("seed %d: told %d times, packed %d", seed, len(plain.announced), len(packed.announced))
		}
		p.Free()
	}
}
