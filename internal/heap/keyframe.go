package heap

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"memtrace/cuda"
	"memtrace/trace"
)

// A heap in a keyframe: the live blocks as the events that made them, and in tables what these do not say. What is kept
// and what is brought back are the same, number by number; names of tables begin with "heap.".

// ErrKeyframe is returned for a keyframe whose contents no replay can have left.
var ErrKeyframe = errors.New("keyframe is inconsistent")

// Where a block is found, for "heap.blocks".
const (
	keptLive     = iota // at its address
	keptReleased        // among the released handles
	keptNowhere         // neither: other memory took its handle
)

// Keep keeps the heap, of whose blocks event returns the allocations; order lists their numbers.
func (h *Heap) Keep(order []uint32, event func(id uint32, b *Block) trace.Event, k *trace.Keyframe) {
	index := make(map[uint32]uint64, len(order))
	special := k.State.Table("heap.blocks")
	for i, id := range order {
		b := *h.blocks.at(id)
		e := event(id, &b)
		if key := h.ownerOf(&b); key.Handle != 0 {
			e.Handle = key.Handle
		}
		index[id] = uint64(i)
		k.Live = append(k.Live, e)
		if b.state != 0 || keptWhere(h, id, &e) != keptLive {
			special.Put(uint64(i), uint64(b.state), uint64(keptWhere(h, id, &e)), h.references.count[id])
		}
	}
	mappings := k.State.Table("heap.mappings")
	for _, addr := range slices.Sorted(h.Mappings.starting()) {
		m, _ := h.Mappings.get(addr)
		behind := uint64(0)
		if m.block != 0 {
			behind = index[m.block-1] + 1
		}
		mappings.Put(addr, m.size, m.seq, behind)
	}
	h.order.keep(&k.State)
	h.Objects.keep(&k.State)
	h.health.keep(k.State.Table("heap.health"))
}

// ownerOf returns the owner of a block, the zero key for none.
func (h *Heap) ownerOf(b *Block) ObjectKey {
	if b.link == 0 || driverSpace(b.Mem) == SpaceHandle {
		return ObjectKey{}
	}
	return h.owners.list[b.link-1].key
}

func keptWhere(h *Heap, id uint32, e *trace.Event) int {
	if at, ok := h.live[SpaceOf(e)].get(e.Addr); ok && at == id {
		return keptLive
	}
	if at, ok := h.releasedHandles.get(e.Addr); ok && at == id {
		return keptReleased
	}
	return keptNowhere
}

// Restore brings back what Keep kept, into an empty heap. opened is called for each block whose size is known, with its
// allocation, as Observer.Opened would be. Only blocks of the spaces that wanted picks come back; nil: all.
func (h *Heap) Restore(k *trace.Keyframe, wanted func(Space) bool,
	opened func(id uint32, b *Block, e *trace.Event)) error {
	r := restorer{h, opened}
	special := k.State.Table("heap.blocks")
	next := keptBlock{index: -1}
	next.read(special)
	ids := make([]uint32, len(k.Live))
	for i := range k.Live {
		kept := keptBlock{index: i}
		if next.index == i {
			kept = next
			next.read(special)
		}
		if at := SpaceOf(&k.Live[i]); wanted != nil && !wanted(at) {
			continue
		}
		id, err := r.block(&k.Live[i], &kept)
		if err != nil {
			return err
		}
		ids[i] = id + 1
	}
	if err := r.mappings(k.State.Table("heap.mappings"), ids); err != nil {
		return err
	}
	h.order.restore(&k.State)
	h.Objects.restore(&k.State)
	h.health.restore(k.State.Table("heap.health"))
	return nil
}

// keptBlock is what the event of a block does not say.
type keptBlock struct {
	index int
	state blockState
	where int
	more  uint64 // references beyond the first
}

func (b *keptBlock) read(t *trace.Numbers) {
	if before := b.index; t.More() {
		*b = keptBlock{int(t.ID()), blockState(t.Next()), int(t.ID()), t.Next()}
		if b.index <= before {
			t.Fail()
		}
		return
	}
	b.index = -1
}

// keptStates are the states that blocks of a keyframe may have: pools of the program's own are in none.
const keptStates = blockReleased | blockShared | blockUnsized

// restorer fills a heap from a keyframe.
type restorer struct {
	*Heap
	opened func(id uint32, b *Block, e *trace.Event)
}

func (h restorer) block(e *trace.Event, kept *keptBlock) (id uint32, err error) {
	account, at := AccountOf(e), SpaceOf(e)
	unsized := kept.state&blockUnsized != 0
	switch {
	case e.Kind != trace.EventAlloc, account == AccountNone, e.Addr == 0, e.Size > MaxBlockBytes, isOwnPool(e),
		kept.state&^keptStates != 0, kept.state&blockShared != 0 != (kept.more > 0),
		unsized && e.Mem != cuda.MemoryImported, kept.where != keptLive && at != SpaceHandle:
		return 0, ErrKeyframe
	}
	id = h.blocks.take(e.Addr)
	b := h.blocks.next()
	FillBlock(b, e, account)
	b.state = kept.state
	switch kept.where {
	case keptLive:
		live := &h.live[at]
		live.reserve(h.blocks.count)
		slot, _, taken := live.find(e.Addr)
		if taken {
			return 0, ErrKeyframe
		}
		live.set(slot, e.Addr, id)
		live.used++
	case keptReleased:
		if _, taken := h.releasedHandles.get(e.Addr); taken {
			return 0, ErrKeyframe
		}
		h.releasedHandles.put(e.Addr, id)
	}
	if key := OwnerOf(e); key.Handle != 0 {
		b.link = h.owners.add(id, key)
	}
	if kept.more > 0 {
		h.references.count[id] = kept.more
	}
	if !unsized && h.opened != nil {
		h.opened(id, b, e)
	}
	h.blocks.put(id, b)
	return id, nil
}

func (h restorer) mappings(t *trace.Numbers, ids []uint32) error {
	for t.More() {
		addr, size, seq, behind := t.Next(), t.Next(), t.Next(), t.Next()
		m := mapping{size: size, seq: seq}
		if behind > uint64(len(ids)) || addr == 0 {
			return ErrKeyframe
		}
		if _, taken := h.Mappings.get(addr); taken {
			return ErrKeyframe
		}
		if behind > 0 && ids[behind-1] == 0 {
			continue // of a block that was not wanted
		}
		if behind > 0 {
			m.block = ids[behind-1]
			b := h.blocks.at(m.block - 1)
			if driverSpace(b.Mem) != SpaceHandle {
				return ErrKeyframe
			}
			b.link++
			h.blocks.put(m.block-1, b)
		}
		h.Mappings.add(addr, m)
	}
	return nil
}

// starting yields the start addresses of the mappings.
func (m *Mappings) starting() func(yield func(uint64) bool) {
	return func(yield func(uint64) bool) {
		for _, s := range m.at.slots {
			if s.addr != 0 && !yield(s.addr) {
				return
			}
		}
	}
}

func (h *HeapHealth) fields() []*uint64 {
	return []*uint64{&h.UnmatchedFrees, &h.UnmatchedMaps, &h.UnmatchedUnmaps, &h.Displaced, &h.LateFrees, &h.LateAllocs,
		&h.FailedFrees, &h.ImplausibleSizes, &h.UnmatchedReferences, &h.ImplicitFrees}
}

func (h *HeapHealth) keep(t *trace.Numbers) {
	for _, v := range h.fields() {
		t.Put(*v)
	}
}

func (h *HeapHealth) restore(t *trace.Numbers) {
	for _, v := range h.fields() {
		*v = t.Next()
	}
}

func comparePlaces(a, b memoryPlace) int {
	return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.addr, b.addr))
}

func (r *reordering) keep(s *trace.State) {
	unmatched := s.Table("heap.unmatched")
	for _, p := range slices.SortedFunc(maps.Keys(r.unmatched), comparePlaces) {
		unmatched.Put(p.addr, uint64(p.space), r.unmatched[p].seq, r.unmatched[p].count)
	}
	expected := s.Table("heap.expected")
	for _, p := range slices.SortedFunc(maps.Keys(r.expected), comparePlaces) {
		expected.Put(p.addr, uint64(p.space), r.expected[p])
	}
	var nodes []uint64
	r.nodes.each(func(addr uint64, _ uint32) { nodes = append(nodes, addr) })
	slices.Sort(nodes)
	s.Table("heap.nodes").Put(nodes...)
	s.Table("heap.displaced").PutSigned(r.displaced...)
}

func (r *reordering) restore(s *trace.State) {
	place := func(t *trace.Numbers) memoryPlace {
		p := memoryPlace{addr: t.Next()}
		if space := t.Next(); space < uint64(SpaceCount) {
			p.space = Space(space)
		} else {
			t.Fail()
		}
		return p
	}
	for t := s.Table("heap.unmatched"); t.More() && len(r.unmatched) < maxUnmatched; {
		r.unmatched[place(t)] = unmatchedFrees{t.Next(), t.Next()}
	}
	for t := s.Table("heap.expected"); t.More() && len(r.expected) < maxUnmatched; {
		r.expected[place(t)] = t.Next()
	}
	for t := s.Table("heap.nodes"); t.More() && r.nodes.used < maxNodes; {
		if addr := t.Next(); addr != 0 {
			r.nodes.Put(addr, 0)
		}
	}
	for t := s.Table("heap.displaced"); t.More() && len(r.displaced) < keptDisplacements; {
		r.displaced = append(r.displaced, t.Signed())
	}
}

// CompareKeys orders the names of objects.
func CompareKeys(a, b ObjectKey) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Handle, b.Handle), cmp.Compare(a.device, b.device))
}

// PutKey and TakeKey keep the name of an object.
func PutKey(t *trace.Numbers, k ObjectKey) {
	t.Put(uint64(k.Kind), k.Handle)
	t.PutSigned(int64(k.device))
}

// TakeKey reads what PutKey wrote.
func TakeKey(t *trace.Numbers) ObjectKey {
	return ObjectKey{Kind: cuda.ObjectKind(t.Next()), Handle: t.Next(), device: int16(t.Signed())}
}

func (o *Objects) keep(s *trace.State) {
	live, ended, contexts := s.Table("heap.objects"), s.Table("heap.ended"), s.Table("heap.contexts")
	for _, key := range slices.SortedFunc(maps.Keys(o.live), CompareKeys) {
		PutKey(live, key)
		live.Put(o.live[key].seq)
		live.PutSigned(int64(o.live[key].device))
	}
	for _, key := range slices.SortedFunc(maps.Keys(o.ended), CompareKeys) {
		PutKey(ended, key)
		ended.Put(o.ended[key])
	}
	for _, handle := range slices.Sorted(maps.Keys(o.contexts)) {
		c := o.contexts[handle]
		contexts.Put(handle, c.seq)
		contexts.PutSigned(int64(c.device))
		contexts.PutBool(c.explicit)
		contexts.PutBool(c.live)
	}
	counts := s.Table("heap.counts")
	for _, kind := range slices.Sorted(maps.Keys(o.counts)) {
		n := o.counts[kind]
		counts.Put(uint64(kind), n.CreatedCount, n.DestroyedCount, n.LiveCount, n.FailedCount)
	}
}

func (o *Objects) restore(s *trace.State) {
	for t := s.Table("heap.objects"); t.More(); {
		key := TakeKey(t)
		o.live[key] = liveObject{t.Next(), int16(t.Signed())}
	}
	for t := s.Table("heap.ended"); t.More() && len(o.ended) < maxUnmatched; {
		key := TakeKey(t)
		o.ended[key] = t.Next()
	}
	for t := s.Table("heap.contexts"); t.More() && len(o.contexts) < MaxContexts; {
		handle := t.Next()
		o.contexts[handle] = context{t.Next(), int16(t.Signed()), t.Bool(), t.Bool()}
	}
	for t := s.Table("heap.counts"); t.More(); {
		n := o.count(cuda.ObjectKind(t.Next()))
		n.CreatedCount, n.DestroyedCount, n.LiveCount, n.FailedCount = t.Next(), t.Next(), t.Next(), t.Next()
	}
}
