package analyzer

import (
	"maps"
	"testing"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// bytesBy is a figure in its smallest form: live bytes of an account by a key of the allocation.
type bytesBy struct {
	noFigure
	account heap.Account
	key     func(x *change) uint64
	live    map[uint64]uint64
}

func (f *bytesBy) needs() need { return need{blocks: true} }

func (f *bytesBy) opened(x *change) {
	if x.block.Account == f.account {
		f.live[f.key(x)] += x.block.Size
	}
}

func (f *bytesBy) closed(x *change) {
	if x.block.Account == f.account {
		f.live[f.key(x)] -= x.block.Size
	}
}

func sumOf(values map[uint64]uint64) (sum uint64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// Two figures that no report has, pinned memory by the library that took it and memory by the graph whose node it is,
// need their own methods and a line that names them. Plain blocks of a framework stay on the path of columns.
func TestFiguresAreAdded(t *testing.T) {
	s := &story{}
	s.alloc(cuda.MemoryHost, 0x1000, 300).alloc(cuda.MemoryHost, 0x2000, 50).free(cuda.MemoryHost, 0x2000)
	s.alloc(cuda.MemoryGraph, 0x3000, 7).owned(0xa).alloc(cuda.MemoryGraph, 0x4000, 11).owned(0xb)
	s.alloc(cuda.MemoryGraph, 0x5000, 1).owned(0xb)
	s.alloc(cuda.MemoryDevice, 0x6000, 1000)
	p, err := NewProfile(openStory(t, encodeEvents(t, s.events)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := p.replayer
	graphs := map[uint64]uint64{}
	pinned := &bytesBy{account: heap.AccountHost, live: map[uint64]uint64{}, key: func(x *change) uint64 {
		return uint64(r.accounts.resolver.Libraries.Of(x.block.Stack))
	}}
	byGraph := &bytesBy{account: heap.AccountGraph, live: graphs, key: func(x *change) uint64 { return x.event.Handle }}
	r.figures.list = append(r.figures.list, pinned, byGraph)
	if err := p.Update(); err != nil {
		t.Fatal(err)
	}
	if want := map[uint64]uint64{0xa: 7, 0xb: 12}; !maps.Equal(graphs, want) {
		t.Errorf("bytes by graph: %v, want %v", graphs, want)
	}
	if sum := sumOf(pinned.live); sum != 300 || sum != r.accounts.totals[heap.AccountHost].Current {
		t.Errorf("%d bytes of pinned memory, want 300", sum)
	}
	if r.figures.sort(); r.figures.plain {
		t.Error("figures of other memory make rows of plain allocations")
	}
}

// A figure that asks for plain allocations and frees sees each of them, and what it counts is what the accounts count.
func TestFiguresSeePlainEvents(t *testing.T) {
	p, err := NewProfile(openStory(t, encodeEvents(t, trainingEvents(2))), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	seen := &everyBlock{bytesBy{account: heap.AccountFramework, live: map[uint64]uint64{},
		key: func(x *change) uint64 { return uint64(profile.DeviceSlot(x.block.Device)) }}, 0}
	p.replayer.figures.list = append(p.replayer.figures.list, seen)
	if err := p.Update(); err != nil {
		t.Fatal(err)
	}
	d := p.replayer.accounts.details[heap.AccountFramework]
	live, events := sumOf(seen.live), d.Total.Allocs+d.Total.Frees
	if live != d.Total.Current || seen.events < events || events == 0 {
		t.Errorf("%d bytes live after %d events, want %d after at least %d", live, seen.events, d.Total.Current, events)
	}
}

type everyBlock struct {
	bytesBy
	events uint64
}

func (f *everyBlock) needs() need { return need{allKinds, true, true} }

func (f *everyBlock) event(*trace.Event) { f.events++ }
