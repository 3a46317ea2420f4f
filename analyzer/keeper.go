package analyzer

import (
	"cmp"
	"slices"

	"memtrace/cuda"
	"memtrace/internal/heap"
	"memtrace/internal/offheap"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// keeper follows what keyframes need and nothing else in a replay keeps: of each live block what its event said beside
// the heap's own, and the name and the module that a replay that did not read ahead would know of it.
type keeper struct {
	noFigure
	r       *replayer
	born    uint64 // blocks so far
	blocks  offheap.Column[keptBlock]
	named   heap.Locator
	modules profile.ModuleNames

	events uint64
	seq    uint64 // highest order number
	time   int64  // latest of an event that was not late
	marks  map[trace.StringID]uint64
	steps  map[uint64]uint64 // by number: events before the first
}

// keptBlock belongs to the block with its order number; what was there before it has another.
type keptBlock struct {
	seq, order   uint64
	stream, rest uint64
	pool         uint32
	module       trace.StringID
	name         trace.StringID
	category     trace.Category
}

// maxKeptMoments bounds the marks and the steps that keyframes are found by.
const maxKeptMoments = 1 << 16

func newKeeper(r *replayer) *keeper {
	return &keeper{r: r, blocks: offheap.NewColumn[keptBlock](r.accounts.room),
		marks: make(map[trace.StringID]uint64), steps: make(map[uint64]uint64)}
}

func (k *keeper) needs() need { return need{allKinds, true, true} }

func (k *keeper) opened(x *change) {
	b, e := x.block, x.event
	k.born++
	*k.blocks.Slot(x.id) = keptBlock{seq: b.Seq, order: k.born, stream: e.Stream, rest: e.Rest, pool: e.Pool,
		module: k.modules.OfStack(b.PyStack, k.r.accounts.links, k.r.accounts.resolver.Tables)}
}

func (k *keeper) event(e *trace.Event) {
	switch e.Kind {
	case trace.EventName:
		k.name(e)
	case trace.EventMark:
		if _, known := k.marks[e.Name]; !known && len(k.marks) <= maxKeptMoments {
			k.marks[e.Name] = k.events
		}
	case trace.EventStep:
		if _, known := k.steps[e.Count]; !known && len(k.steps) <= maxKeptMoments {
			k.steps[e.Count] = k.events
		}
	}
	k.events++
	k.seq = max(k.seq, e.Seq)
	if e.Flags&trace.FlagLate == 0 {
		k.time = max(k.time, e.Time)
	}
}

// name is replayer.name without what was read ahead.
func (k *keeper) name(e *trace.Event) {
	if e.Category == trace.CategoryModule {
		k.modules.Named(e.Handle, e.Name)
	}
	id, ok := namedBlock(&k.named, k.r.heap, e)
	if !ok {
		return
	}
	b := k.r.heap.Block(id)
	kept := k.blocks.Slot(id)
	whole := b.Account == heap.AccountDriver && b.Addr == e.Addr
	if kept.seq != b.Seq || training.KeepsName(kept.category, e.Category, whole) {
		return
	}
	if kept.category, kept.name = e.Category, e.Name; e.Category == trace.CategoryFree {
		kept.name = 0
	}
}

// of returns what is kept of a block; one whose size is not known yet has nothing.
func (k *keeper) of(id uint32, b *heap.Block) keptBlock {
	if int(id) < k.blocks.Len() {
		if kept := *k.blocks.At(id); kept.seq == b.Seq && kept.order > 0 {
			return kept
		}
	}
	return keptBlock{order: 1<<63 + b.Seq}
}

// order lists the live blocks as they came.
func (k *keeper) order() []uint32 {
	type came struct {
		order uint64
		id    uint32
	}
	var list []came
	k.r.heap.Each(func(id uint32, b *heap.Block) { list = append(list, came{k.of(id, b).order, id}) })
	slices.SortFunc(list, func(a, b came) int { return cmp.Compare(a.order, b.order) })
	ids := make([]uint32, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}

// eventOf is an allocation that makes the block as it is now.
func (k *keeper) eventOf(id uint32, b *heap.Block) trace.Event {
	kept, e := k.of(id, b), allocationOf(b)
	e.Stream, e.Rest, e.Pool = kept.stream, kept.rest, kept.pool
	return e
}

// allocationOf is eventOf as far as the heap knows.
func allocationOf(b *heap.Block) trace.Event {
	e := trace.Event{Kind: trace.EventAlloc, Seq: b.Seq, Time: b.Time, Addr: b.Addr, Size: b.Size, Stack: b.Stack,
		PyStack: b.PyStack, Tag: b.Tag, Thread: b.Thread, API: b.Call, Device: b.Device, Mem: b.Mem,
		Level: cuda.LevelDriver}
	host := b.Mem == cuda.MemoryHost || b.Mem == cuda.MemoryRegistered
	if b.Account == heap.AccountFramework || b.Account == heap.AccountOther && host {
		e.Level = cuda.LevelFramework
	}
	return e
}

// canKeep reports whether a keyframe can hold the state as it is.
func (r *replayer) canKeep() bool {
	return !r.losses.begun && !r.accounts.thin && len(r.poolStacks) == 0 && r.device.CanKeep() && r.ooms.CanKeep() &&
		!r.accounts.resolver.Places.HasOwnPools()
}
