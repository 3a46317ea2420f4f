package export

import (
	"math"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// snapshotAction is the action of an entry of a snapshot's history.
type snapshotAction uint8

const (
	actionAlloc snapshotAction = iota
	actionFree                 // two entries: requested and completed
	actionSegmentAlloc
	actionSegmentFree
	actionSegmentMap
	actionSegmentUnmap
	actionOOM
	actionMark
)

// snapshotEntry is an event of the history. It contains the block's fields, since blocks are gone when it is written.
type snapshotEntry struct {
	block  snapshotBlock
	time   int64 // nanoseconds since the trace's base, never less than that of the entry before
	size   uint64
	name   trace.StringID
	action snapshotAction
}

// snapshotBlock is a block of a framework or of the driver.
type snapshotBlock struct {
	addr, size     uint64
	request        uint64 // requested bytes; the size if unknown
	stream         uint64
	order          uint64 // of its beginning: its entry's number
	stack, pystack trace.StackID
	device         int16
	handle         bool // memory that appears at an address where it is mapped
	mapped         bool
}

// wholeRun is more changes than a trace can have.
const wholeRun = math.MaxUint64

// snapshotWatch keeps the content of a snapshot: the live blocks and the latest entries.
type snapshotWatch struct {
	watchNothing
	names trace.Source
	last  uint64 // change after which the snapshot is taken; wholeRun: the end
	done  bool

	changes   uint64
	live      [heap.AccountCount]uint64
	blocks    [heap.AccountCount]map[uint32]*snapshotBlock
	handles   map[uint64]uint32 // of live driver memory: its number
	entries   []snapshotEntry   // a ring once it is full
	limit     int
	number    uint64 // of entries so far
	forgotten uint64
	time      int64

	framework trace.StackID // native stack of a framework's first event: its caller is the allocator
	known     bool
}

func newSnapshotWatch(names trace.Source, limit int, last uint64) *snapshotWatch {
	w := &snapshotWatch{names: names, limit: max(limit, 1), last: last, done: last == 0,
		handles: make(map[uint64]uint32)}
	w.blocks[heap.AccountDriver], w.blocks[heap.AccountFramework] = make(map[uint32]*snapshotBlock),
		make(map[uint32]*snapshotBlock)
	return w
}

// add appends an entry, replacing the oldest one once the limit is reached.
func (w *snapshotWatch) add(action snapshotAction, time int64, b *snapshotBlock) *snapshotEntry {
	w.time = max(w.time, time)
	e := snapshotEntry{block: *b, time: w.time, action: action, size: b.request}
	w.number++
	if len(w.entries) < w.limit {
		w.entries = append(w.entries, e)
		return &w.entries[len(w.entries)-1]
	}
	w.forgotten++
	at := (w.number - 1) % uint64(w.limit)
	w.entries[at] = e
	return &w.entries[at]
}

// entry returns one by its number, nil if it was forgotten.
func (w *snapshotWatch) entry(number uint64) *snapshotEntry {
	if number+uint64(len(w.entries)) < w.number {
		return nil
	}
	return &w.entries[number%uint64(w.limit)]
}

// each calls visit for the kept entries in their order.
func (w *snapshotWatch) each(visit func(*snapshotEntry)) {
	for n := w.number - uint64(len(w.entries)); n < w.number; n++ {
		visit(&w.entries[n%uint64(w.limit)])
	}
}

// Opened implements analyzer.Watcher.
func (w *snapshotWatch) Opened(id uint32, b *heap.Block, e *trace.Event) {
	if !changes(b) || w.done {
		return
	}
	v := &snapshotBlock{addr: b.Addr, size: b.Size, request: b.Size, stream: e.Stream, order: w.number, stack: b.Stack,
		pystack: b.PyStack, device: max(b.Device, 0)}
	action := actionSegmentAlloc
	switch {
	case b.Account == heap.AccountFramework:
		action = actionAlloc
		if e.Rest > 0 && e.Rest-1 <= b.Size {
			v.request = b.Size - (e.Rest - 1)
		}
		if !w.known {
			w.framework, w.known = b.Stack, true
		}
	case b.Mem == cuda.MemoryVMM:
		action, v.handle = actionSegmentMap, true
		w.handles[b.Addr] = id
	}
	w.blocks[b.Account][id] = v
	w.add(action, e.Time, v)
	w.changed(b.Account, b.Size)
}

// Closed implements analyzer.Watcher.
func (w *snapshotWatch) Closed(id uint32, b *heap.Block, e *trace.Event) {
	if !changes(b) || w.done {
		return
	}
	v := w.blocks[b.Account][id]
	if v == nil {
		return
	}
	action := actionSegmentFree
	switch {
	case b.Account == heap.AccountFramework:
		action = actionFree
	case v.handle:
		action = actionSegmentUnmap
		delete(w.handles, b.Addr)
	}
	delete(w.blocks[b.Account], id)
	w.add(action, e.Time, v)
	w.changed(b.Account, -b.Size)
}

// changed counts a change, and stops at the requested one.
func (w *snapshotWatch) changed(a heap.Account, by uint64) {
	w.live[a] += by
	w.changes++
	w.done = w.changes == w.last
}

// Event implements analyzer.Watcher.
func (w *snapshotWatch) Event(e *trace.Event) {
	if w.done {
		return
	}
	switch e.Kind {
	case trace.EventMap:
		w.mapped(e)
	case trace.EventOOM:
		w.add(actionOOM, e.Time, &snapshotBlock{request: e.Size, stack: e.Stack, pystack: e.PyStack,
			device: max(e.Device, 0)})
	case trace.EventMark:
		w.add(actionMark, e.Time, &snapshotBlock{}).name = e.Name
	}
}

// mapped sets the address of a handle's memory, from its beginning on, to that of its first mapping.
func (w *snapshotWatch) mapped(e *trace.Event) {
	id, live := w.handles[e.Handle]
	if !live || e.Status != 0 {
		return
	}
	v := w.blocks[heap.AccountDriver][id]
	if v == nil || v.mapped {
		return
	}
	v.addr, v.mapped = e.Addr, true
	if begin := w.entry(v.order); begin != nil && begin.action == actionSegmentMap {
		begin.block.addr, begin.block.mapped = e.Addr, true
	}
}
