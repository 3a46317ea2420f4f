package analyzer

import (
	"fmt"
	"testing"

	"memtrace/analyzer/heap"
	"memtrace/cuda"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// witness writes down what a heap tells, as far as a packed heap knows it.
type witness struct{ told []string }

func (w *witness) tell(what string, b *heap.Block, e *trace.Event) {
	w.told = append(w.told, fmt.Sprintf("%s at %d: %#x %d %d stack %d %d tag %d thread %d %v device %d %v %v", what, e.Seq, b.Addr, b.Size, b.Seq, b.Stack, b.PyStack, b.Tag, b.Thread, b.Call,
		b.Device, b.Account, b.Mem))
}

func (w *witness) Opened(_ uint32, b *heap.Block, e *trace.Event) { w.tell("opened", b, e) }
func (w *witness) Closed(_ uint32, b *heap.Block, e *trace.Event) { w.tell("closed", b, e) }
func (w *witness) Elapsed(b *heap.Block, e *trace.Event)          { w.tell("elapsed", b, e) }
func (w *witness) Refused(e *trace.Event)                         { w.told = append(w.told, fmt.Sprint("refused ", e.Seq)) }

// The replay inside a recorded program tells what a reader's tells, whatever a program, a driver and a recorder do.
func TestPackedHeapTellsTheSame(t *testing.T) {
	for seed := range uint64(30) {
		shape := streamShape{events: 2000, wild: seed%2 == 1}
		if seed%3 == 1 {
			shape.delayed = func(trace.Event) bool { return true }
		}
		plain, packed := &witness{}, &witness{}
		h, p := heap.NewHeap(plain), heap.NewPackedHeap(packed, 1<<40)
		for _, e := range randomStream(seed, shape) {
			h.Apply(&e)
			p.Apply(&e)
			if h.Health() != p.Health() || h.Len() != p.Len() {
				t.Fatalf("seed %d, event %d: %+v, %d blocks; packed %+v, %d blocks", seed, e.Seq, h.Health(), h.Len(), p.Health(), p.Len())
			}
		}
		told := make(map[string]int) // which block of an owner ends first is not said
		for i := range plain.told {
			told[plain.told[i]]++
		}
		for _, text := range packed.told {
			if told[text]--; told[text] < 0 {
				t.Fatalf("seed %d: only the packed heap tells: %s", seed, text)
			}
		}
		if len(plain.told) != len(packed.told) || len(plain.told) == 0 {
			t.Fatalf("seed %d: told %d times, packed %d", seed, len(plain.told), len(packed.told))
		}
		p.Free()
	}
}

// A live block took 240 bytes of the program's memory, most of them in Go's heap. What counts is every moment, also that in which a table is moved to twice the room.
func TestPackedBlockIsSmall(t *testing.T) {
	const blocks, most = 3_000_000, 48
	before, worst, slots := offheap.Bytes(), 0.0, 0
	w := NewOOMWatch(&trace.Tables{}, trace.Info{}, 1<<40)
	events := make([]trace.Event, 1000)
	for n := uint64(0); n < blocks; n += uint64(len(events)) {
		for i := range events {
			k := n + uint64(i)
			events[i] = trace.Event{Kind: trace.EventAlloc, Seq: k + 1, Level: cuda.LevelDriver, Mem: cuda.MemoryDevice, API: api("cuMemAlloc_v2"), Addr: 0x7f0000000000 + k*512, Size: 512, Thread: 1, Handle: 0x1000,
				Stack: trace.StackID(1 + k%100)}
		}
		w.Apply(events)
		moved := 0
		if now := w.collector.heap.Room(); now != slots {
			moved, slots = 4*slots, now // both were there for a moment
		}
		if n > blocks/5 { // parts come by the MiB
			worst = max(worst, float64(offheap.Bytes()-before+int64(moved))/float64(n+uint64(len(events))))
		}
	}
	if worst > most {
		t.Errorf("%.1f bytes for a live block", worst)
	}
	if n, short := w.Short(); n != blocks || short {
		t.Errorf("%d blocks, short %v", n, short)
	}
	t.Logf("%.1f bytes for a live block at most", worst)
	if w.Close(); offheap.Bytes() != before {
		t.Errorf("%d bytes are left when it is closed", offheap.Bytes()-before)
	}
}

// Out of room, a watch goes on to be right until it is given up.
func TestWatchShortOfRoom(t *testing.T) {
	const most = 4 << 20
	w := NewOOMWatch(&trace.Tables{}, trace.Info{}, offheap.Bytes()+most)
	short := 0
	var events []trace.Event
	for k := range uint64(300_000) {
		events = append(events[:0], trace.Event{Kind: trace.EventAlloc, Seq: k + 1, Level: cuda.LevelFramework, Mem: cuda.MemoryDevice, API: 64, Addr: 0x7f0000000000 + k*512, Size: 512, Thread: 1})
		w.Apply(events)
		if n, is := w.Short(); n != int(k)+1 || is != (short > 0 || is) {
			t.Fatalf("%d blocks of %d, short %v", n, k+1, is)
		} else if is && short == 0 {
			short = n
		}
	}
	if short < most/48 || short > most/32 {
		t.Errorf("short of room with %d blocks in %d bytes", short, most)
	}
	if got := w.collector.details[heap.AccountFramework].total.Current; got != 300_000*512 {
		t.Errorf("%d bytes are live", got)
	}
	w.Close()
}
