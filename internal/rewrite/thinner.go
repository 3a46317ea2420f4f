package rewrite

import (
	"math"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/offheap"
	"memtrace/trace"
)

// ThinningWindow is how many events are looked at together: the thinned part has exact figures for at least one moment
// of each window.
const ThinningWindow = 1 << 16

// Thinner takes the events of a trace in the order of the file and returns those that stay. Cut into windows, and in
// every window:
//
//   - A pair of an allocation and its free stays out if both lie in the window and the block was live at none of the
//     window's moments: the maximum of each level and device, marks, samples and OOM events. So everything that was
//     live at a moment stays, and bytes at any other time are at most what they were. The maximum of a run is the
//     maximum of one of its windows: it stays exact, with all its owners, and so do all later states of what is live.
//   - A window ends where least is live in its second half, which in training is between two iterations.
//   - Of marks the first and the last of each name stay, of steps and epochs the first and the last, of samples of a
//     device the last and the highest, of a pool's reports the last. Launches stay out.
//   - Whatever the replay has to repair, and everything about contexts, handles, mappings and graphs, stays.
//
// What it returns may be thinned again, with wider windows: each then spans more of the run.
type Thinner struct {
	heap   *heap.Heap
	rows   []trace.Event
	notes  []note
	more   []change              // of rows that change more than one total
	opened offheap.Column[int32] // by block: 1 + the row of its allocation, 0 if that is not in the window
	base   [slots]int64          // bytes at the window's beginning
	at     int32                 // the row that is replayed

	locator heap.Locator
	highest [2][devices]uint64 // that a framework reported so far: allocated, reserved
	moments []int32            // rows of the window's moments, ascending
	seen    map[seenKey]firstLast
	forward map[operator]int32
	waits   map[uint64][]int32 // by event that blocks wait for: rows of the window
	awaited map[uint64]bool    // events that blocks of earlier windows wait for
	left    trace.Thinned
	out     []trace.Event
}

// note is what the replay told about a row.
type note struct {
	bytes int64 // by which the total of its slot changes
	// an allocation's free, a free's allocation, a name's allocation, as 1 + its row; 0: none in the window
	peer  int32
	block uint32 // an allocation's
	slot  int16  // -1: no total changes
	keep  bool   // the pair is not to be left out
	drop  bool
}

// change is one of several that a row makes.
type change struct {
	row   int32
	slot  int16
	bytes int64
}

// Totals are kept for the two levels that reports describe moments of, for each of the first devices and over all
// devices; and one for each other account, whose maximum is told.
const (
	devices  = 16
	ofLevel  = devices + 1
	ofOthers = 2 * ofLevel
	slots    = ofOthers + int(heap.AccountCount)
)

// slotOf returns the total that a block counts with first.
func slotOf(b *heap.Block) int16 {
	device := int16(devices - 1)
	if b.Device >= 0 && b.Device < devices {
		device = b.Device
	}
	switch b.Account {
	case heap.AccountFramework:
		return device
	case heap.AccountDriver:
		return ofLevel + device
	}
	return ofOthers + int16(b.Account)
}

// NewThinner returns a Thinner with windows of so many events. Its replay takes at most so many bytes outside of Go's
// heap for live blocks; 0: any. It is to be closed.
func NewThinner(window int, most int64) *Thinner {
	t := &Thinner{rows: make([]trace.Event, 0, window), notes: make([]note, 0, window),
		seen: make(map[seenKey]firstLast), forward: make(map[operator]int32), waits: make(map[uint64][]int32),
		awaited: make(map[uint64]bool)}
	if most > 0 {
		t.heap = heap.NewPackedHeap(t, most)
	} else {
		room := offheap.NewRoom(math.MaxInt64)
		t.heap, t.opened = heap.NewHeap(t, room), offheap.NewColumn[int32](room)
	}
	return t
}

// Close gives the memory back. The Thinner is not to be used any more.
func (t *Thinner) Close() { t.heap.Free() }

// Short reports that the replay found no room for more live blocks.
func (t *Thinner) Short() bool { return t.heap.Short() }

// LeftOut says what was left out so far.
func (t *Thinner) LeftOut() trace.Thinned { return t.left }

// Below returns the lowest order number that an event may have that was not returned yet and is not late.
func (t *Thinner) Below() uint64 {
	for i := range t.rows {
		if e := &t.rows[i]; e.Flags&trace.FlagLate == 0 && e.Kind != trace.EventLost {
			return e.Seq
		}
	}
	return 0
}

// Add takes the next events and returns those that are to be written, valid until the next call.
func (t *Thinner) Add(events []trace.Event) []trace.Event {
	t.out = t.out[:0]
	for i := range events {
		if len(t.rows) == cap(t.rows) {
			t.closeWindow(t.quietest())
		}
		t.replay(&events[i])
	}
	return t.out
}

// Rest returns what is left to be written. What is added afterwards begins a new window.
func (t *Thinner) Rest() []trace.Event {
	t.out = t.out[:0]
	t.closeWindow(len(t.rows))
	return t.out
}

// replay takes one event into the window.
func (t *Thinner) replay(e *trace.Event) {
	t.at = int32(len(t.rows))
	t.rows = append(t.rows, *e)
	t.notes = append(t.notes, note{slot: -1, keep: e.Flags&(trace.FlagLate|trace.FlagReference) != 0})
	if e.Kind == trace.EventName && e.Addr != 0 {
		if id, ok := t.locator.Find(t.heap, e.Addr); ok {
			t.notes[t.at].peer = t.openedAt(id)
		}
		return
	}
	if e.Kind == trace.EventLost {
		t.heap.LoseRecords()
	}
	t.heap.Apply(e)
}

// openedAt returns 1 + the row of a block's allocation, 0 if that is not in the window.
func (t *Thinner) openedAt(id uint32) int32 {
	if int(id) >= t.opened.Len() {
		return 0
	}
	return *t.opened.At(id)
}

// Opened implements heap.Observer.
func (t *Thinner) Opened(id uint32, b *heap.Block, e *trace.Event) {
	t.count(slotOf(b), int64(b.Size))
	n := &t.notes[t.at]
	if e.Kind != trace.EventAlloc || !isPlain(e) {
		n.keep = true
		return
	}
	*t.opened.Slot(id), n.block = t.at+1, id
}

// Closed implements heap.Observer.
func (t *Thinner) Closed(id uint32, b *heap.Block, e *trace.Event) {
	t.count(slotOf(b), -int64(b.Size))
	n := &t.notes[t.at]
	row := t.openedAt(id)
	if e.Kind != trace.EventFree || !isPlain(e) || n.peer != 0 {
		n.keep = true // a block that was displaced, or that ended with its owner
		if row != 0 {
			t.notes[row-1].keep = true
		}
	}
	if row == 0 {
		return
	}
	*t.opened.At(id) = 0
	if e.Kind == trace.EventFree {
		n.peer, t.notes[row-1].peer = row, t.at+1
	}
}

// LateAlloc implements heap.Observer.
func (t *Thinner) LateAlloc(*heap.Block, *trace.Event) { t.notes[t.at].keep = true }

// Refused implements heap.Observer.
func (t *Thinner) Refused(*trace.Event) { t.notes[t.at].keep = true }

// isPlain reports whether an event's memory is an address that one call hands out and one takes back.
func isPlain(e *trace.Event) bool {
	if e.Status != 0 || e.Addr == 0 {
		return false
	}
	if e.Level == cuda.LevelFramework {
		return true
	}
	switch e.Mem {
	case cuda.MemoryDevice, cuda.MemoryManaged, cuda.MemoryHost, cuda.MemoryRegistered, cuda.MemoryAsync:
		return true
	}
	return false
}

func (t *Thinner) count(slot int16, bytes int64) {
	n := &t.notes[t.at]
	if n.slot < 0 {
		n.slot, n.bytes = slot, bytes
		return
	}
	t.more = append(t.more, change{t.at, slot, bytes})
}
