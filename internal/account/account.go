// Package account holds the null driver's log against a trace: both are read as a list of blocks that came and went, in
// the driver's words, and compared change by change. Tests of whole programs use it.
package account

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/trace"
)

// Change is one block that was allocated, freed, or refused for lack of memory.
type Change struct {
	Device     int
	Kind       string // as the driver has it: device, managed, host, async, vmm, array, ...
	Op         string // alloc, free or oom
	Addr, Size uint64 // the handle's, where the memory has no address; the requested size
}

// placed leaves the device out of memory that is on none, or on several.
func (c Change) placed() Change {
	if c.Kind == "host" || c.Kind == "multicast" {
		c.Device = -1
	}
	return c
}

func (c Change) String() string {
	return fmt.Sprintf("%s of %#x, %d bytes, on device %d", c.Op, c.Addr, c.Size, c.Device)
}

// Account is what happened, in order.
type Account []Change

// Log reads a null driver's log.
func Log(path string) (a Account, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the null driver's log: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var seq, ns uint64
		var c Change
		if _, err := fmt.Sscan(lines.Text(), &seq, &ns, &c.Device, &c.Kind, &c.Op, &c.Addr, &c.Size); err != nil {
			return nil, fmt.Errorf("read the null driver's log: %q: %w", lines.Text(), err)
		}
		a = append(a, c.placed())
	}
	return a, lines.Err()
}

// Of returns the changes of some kinds of memory, without what was refused.
func (a Account) Of(kinds ...string) (some Account) {
	for _, c := range a {
		if slices.Contains(kinds, c.Kind) && c.Op != "oom" {
			some = append(some, c)
		}
	}
	return some
}

// Total is what is live.
type Total struct {
	Count int
	Bytes uint64
}

// Live returns what is there of some kinds at the end.
func (a Account) Live(kinds ...string) (t Total) {
	for _, c := range a.Of(kinds...) {
		if c.Op == "alloc" {
			t = Total{t.Count + 1, t.Bytes + c.Size}
		} else {
			t = Total{t.Count - 1, t.Bytes - c.Size}
		}
	}
	return t
}

// ordered is the account with what goes at once, as a context's blocks do, in order of kind and address.
func (a Account) ordered() Account {
	a = slices.Clone(a)
	for from := 0; from < len(a); from++ {
		to := from
		for to < len(a) && a[to].Op == "free" {
			to++
		}
		slices.SortStableFunc(a[from:to], func(x, y Change) int {
			if x.Kind != y.Kind {
				return strings.Compare(x.Kind, y.Kind)
			}
			return int(min(max(int64(x.Addr-y.Addr), -1), 1))
		})
		from = to
	}
	return a
}

// Differs returns, in words, the first change that two accounts do not share, "" for none.
func (a Account) Differs(b Account) string {
	have, want := b.ordered(), a.ordered()
	for i := range max(len(want), len(have)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("the trace has more: %v", have[i])
		case i >= len(have):
			return fmt.Sprintf("the trace lacks: %v", want[i])
		case want[i] != have[i]:
			return fmt.Sprintf("change %d: the driver says %v, the trace %v", i, want[i], have[i])
		}
	}
	return ""
}

// ContextBytes is what each live context costs in a replay.
const ContextBytes = 10 << 20

// Replay is what the analyzer makes of a trace.
type Replay struct {
	Account
	Reserves map[[2]uint64]uint64 // bytes held, by object and handle
	Nodes    map[uint64][]uint64  // graph nodes: bytes by address
	Refused  int

	heap     *heap.Heap
	contexts map[uint64]context // live ones
}

type context struct {
	device int
	made   bool // by the program, not the primary one
}

// NewReplay returns an empty one.
func NewReplay() *Replay {
	r := &Replay{Reserves: map[[2]uint64]uint64{}, Nodes: map[uint64][]uint64{}, contexts: map[uint64]context{}}
	r.heap = heap.NewHeap(watcher{r}, nil)
	return r
}

// Apply takes in an event.
func (r *Replay) Apply(e *trace.Event) {
	r.heap.Apply(e)
	r.context(e)
	switch {
	case e.Kind == trace.EventReserve:
		r.Reserves[[2]uint64{uint64(e.Object), e.Addr}] = e.Size
	case e.Kind == trace.EventDestroy && e.Object == cuda.ObjectPool && e.Status == 0:
		delete(r.Reserves, [2]uint64{uint64(cuda.ObjectPool), e.Addr})
	}
}

func (r *Replay) add(device int, kind, op string, addr, size uint64) {
	r.Account = append(r.Account, Change{device, kind, op, addr, size}.placed())
}

// context takes in the beginning or the end of a context; without a handle it is the primary one of the only device.
func (r *Replay) context(e *trace.Event) {
	switch {
	case e.Object != cuda.ObjectContext || e.Status != 0 || e.Flags&trace.FlagReference != 0:
	case e.Kind == trace.EventCreate:
		r.contexts[e.Addr] = context{int(e.Device), strings.HasPrefix(e.API.String(), "cuCtxCreate")}
		r.add(int(e.Device), "context", "alloc", e.Addr, ContextBytes)
	case e.Kind == trace.EventDestroy:
		for handle, c := range r.contexts {
			if handle == e.Addr || e.Addr == 0 && !c.made {
				delete(r.contexts, handle)
				r.add(c.device, "context", "free", handle, ContextBytes)
			}
		}
	}
}

// watcher notes what the heap opens and closes.
type watcher struct{ r *Replay }

func (w watcher) Opened(_ uint32, b *heap.Block, _ *trace.Event) {
	if b.Mem == cuda.MemoryGraph {
		w.r.Nodes[b.Addr] = append(w.r.Nodes[b.Addr], b.Size)
	}
	w.r.add(int(b.Device), kindOf(b), "alloc", b.Addr, b.Size)
}
func (w watcher) Closed(_ uint32, b *heap.Block, _ *trace.Event) {
	w.r.add(int(b.Device), kindOf(b), "free", b.Addr, b.Size)
}
func (w watcher) LateAlloc(*heap.Block, *trace.Event) {}
func (w watcher) Refused(*trace.Event)                { w.r.Refused++ }

// kindOf names a block as the null driver does.
func kindOf(b *heap.Block) string {
	switch {
	case b.Mem == cuda.MemoryVMM && b.Device < 0, b.Mem == cuda.MemoryRegistered:
		return "host"
	case b.Mem == cuda.MemoryForeign, b.Mem == cuda.MemoryImported:
		return "ipc"
	case b.Mem == cuda.MemoryArray && b.Size == 0:
		return "sparse"
	}
	return b.Mem.String()
}
