package rewrite

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"memtrace/internal/heap"
	"memtrace/trace"
)

// Live is what is live at the end of a trace: the events that tell of it. Its memory grows with the live blocks, not
// with the events that were read.
type Live struct {
	heap     *heap.Heap
	locator  heap.Locator
	blocks   map[uint32]*block // by the heap's numbers
	mappings map[uint64]trace.Event
	objects  map[heap.ObjectKey]trace.Event
	names    map[nameKey]trace.Event
	reserves map[place]trace.Event
	samples  map[int16]trace.Event
	last     int64 // when the last event was, in nanoseconds since the trace's time base
}

type block struct {
	alloc trace.Event
	names []trace.Event // of bytes of it, each said once
}

// nameKey is what makes two names of objects the same.
type nameKey struct {
	handle   uint64
	category trace.Category
	name     trace.StringID
}

// place is a pool on a device.
type place struct {
	addr   uint64
	device int16
}

// ReadLive reads a trace to its end. src then has the dictionary that Write needs.
func ReadLive(src trace.Source) (*Live, error) {
	l := &Live{blocks: make(map[uint32]*block), mappings: make(map[uint64]trace.Event),
		objects: make(map[heap.ObjectKey]trace.Event),
		names:   make(map[nameKey]trace.Event), reserves: make(map[place]trace.Event),
		samples: make(map[int16]trace.Event)}
	l.heap = heap.NewHeap(observer{live: l}, nil)
	for {
		batch, err := src.ReadBatch()
		if err == io.EOF {
			return l, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what is live: %w", err)
		}
		for i := range batch {
			l.add(&batch[i])
		}
	}
}

// observer keeps the allocation of each live block.
type observer struct {
	heap.NoopObserver
	live *Live
}

func (o observer) Opened(id uint32, _ *heap.Block, e *trace.Event) {
	o.live.blocks[id] = &block{alloc: *e}
}

func (o observer) Closed(id uint32, _ *heap.Block, _ *trace.Event) { delete(o.live.blocks, id) }

func (l *Live) add(e *trace.Event) {
	l.heap.Apply(e)
	l.last = max(l.last, e.Time)
	switch e.Kind {
	case trace.EventMap:
		l.mappings[e.Addr] = *e
	case trace.EventUnmap:
		delete(l.mappings, e.Addr)
	case trace.EventCreate:
		l.objects[heap.KeyOf(e.Object, e.Addr, e.Device)] = *e
	case trace.EventDestroy:
		if e.Flags&trace.FlagReference == 0 {
			delete(l.objects, heap.KeyOf(e.Object, e.Addr, e.Device))
		}
	case trace.EventName:
		l.addName(e)
	case trace.EventReserve:
		l.reserves[place{e.Addr, e.Device}] = *e
	case trace.EventSample:
		l.samples[e.Device] = *e
	}
}

// addName keeps what names a live block, or an object.
func (l *Live) addName(e *trace.Event) {
	if e.Addr == 0 {
		l.names[nameKey{e.Handle, e.Category, e.Name}] = *e
		return
	}
	id, ok := l.locator.Find(l.heap, e.Addr)
	if !ok || l.blocks[id] == nil {
		return
	}
	b := l.blocks[id]
	b.names = slices.DeleteFunc(b.names, func(known trace.Event) bool {
		return known.Addr == e.Addr && known.Category == e.Category
	})
	b.names = append(b.names, *e)
}

// Bytes returns how many bytes of device memory are live in the driver's account, and of blocks in the framework's.
func (l *Live) Bytes() (driver, framework uint64) {
	l.heap.Each(func(_ uint32, b *heap.Block) {
		switch b.Account {
		case heap.AccountDriver:
			driver += b.Size
		case heap.AccountFramework:
			framework += b.Size
		}
	})
	return driver, framework
}

// events returns all that tells of what is live, in the order in which it happened, with order numbers of their own.
// What a framework says of its sums is left out: it counts what is gone.
func (l *Live) events() []trace.Event {
	var list []trace.Event
	for _, b := range l.blocks {
		e := b.alloc
		e.Allocated, e.Reserved, e.Flags = 0, 0, e.Flags&^trace.FlagLate
		list = append(append(list, e), b.names...)
	}
	l.heap.Mappings.Each(func(addr, _ uint64, _ *heap.Block) {
		if e, ok := l.mappings[addr]; ok {
			list = append(list, e)
		}
	})
	list = appendAll(list, l.objects)
	list = appendAll(list, l.names)
	list = appendAll(list, l.reserves)
	list = appendAll(list, l.samples)
	slices.SortFunc(list, func(a, b trace.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range list {
		list[i].Seq = uint64(i) + 1
		list[i].Flags &^= trace.FlagLate
	}
	return list
}

func appendAll[K comparable](list []trace.Event, events map[K]trace.Event) []trace.Event {
	for _, e := range events {
		list = append(list, e)
	}
	return list
}
