package analyzer

import (
	"maps"
	"math"
	"slices"

	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// What a keyframe holds of a replay; names of tables of its own begin with "replay.". A window makes highest values and
// counts begin anew, so that those need not be kept.

// keep returns the state as a keyframe before the block of events at an offset.
func (k *keeper) keep(offset int64) *trace.Keyframe {
	r, a := k.r, &k.r.accounts
	f := &trace.Keyframe{KeyframePlace: trace.KeyframePlace{Offset: offset, Events: k.events, Seq: k.seq, Time: k.time}}
	s, order := &f.State, k.order()
	a.resolver.Libraries.Keep(s)
	a.links.Keep(s)
	a.resolver.Places.Keep(s)
	k.modules.Keep(s)
	a.held.Keep(s)
	r.heap.Keep(order, k.eventOf, f)
	k.keepBlocks(s, order)
	r.device.Keep(s)
	r.allocator.Keep(s)
	r.parameters.Keep(s)
	r.elements.Keep(s)
	r.ooms.Keep(s)
	if a.iterations != nil {
		a.iterations.Keep(s, order)
	}
	r.keepCounts(s, order)
	return f
}

// keepBlocks keeps what blocks are called without reading ahead, and where that is another thing also with it.
func (k *keeper) keepBlocks(s *trace.State, order []uint32) {
	a := &k.r.accounts
	names, foreseen := s.Table("replay.names"), s.Table("replay.foreseen")
	for i, id := range order {
		b := k.r.heap.Block(id)
		kept := k.of(id, b)
		called := preset{kept.category, kept.name, kept.module}
		if called != (preset{}) {
			called.keep(names, i)
		}
		if d := a.byOrigin(b); d != nil && int(id) < a.live.Len() {
			o := &d.Cells.List[a.live.At(id).Cell].Origin
			if with := (preset{o.Category, o.Name, o.Module}); with != called {
				with.keep(foreseen, i)
			}
		}
	}
	k.keepLater(s, order)
}

func (k *keeper) keepLater(s *trace.State, order []uint32) {
	known, later := k.r.accounts.lookahead, s.Table("training.later")
	for i, id := range order {
		b := k.r.heap.Block(id)
		if name, ok := known.Of(b.Seq); ok && b.Account == heap.AccountFramework {
			later.Put(uint64(i), uint64(name.Category), uint64(name.Name))
		}
	}
}

// keepCounts keeps what was counted over the whole run.
func (r *replayer) keepCounts(s *trace.State, order []uint32) {
	a, t := &r.accounts, s.Table("replay.counts")
	t.Put(a.estimated, a.runtimeOnly)
	t.PutSigned(r.lastTime)
	t.PutBool(a.requests.Known())
	meters := s.Table("replay.meters")
	for account := range a.totals {
		if d := a.details[account]; d != nil {
			profile.KeepMeters(meters, &d.Total, d.Devices)
		} else {
			profile.KeepMeters(meters, &a.totals[account], nil)
		}
	}
	r.keepThreads(s, order)
}

// keepThreads keeps which block each thread opened last.
func (r *replayer) keepThreads(s *trace.State, order []uint32) {
	index := make(map[uint32]int, len(order))
	for i, id := range order {
		index[id] = i
	}
	threads := s.Table("replay.threads")
	for thread, latest := range r.threads {
		if i, live := index[latest-1]; latest != 0 && live {
			threads.Put(uint64(thread), uint64(i))
		}
	}
}

// presets are what the blocks of a keyframe are called.
func (r *replayer) presets(f *trace.Keyframe) []preset {
	list := make([]preset, len(f.Live))
	take := func(table string) {
		for t := f.State.Table(table); t.More(); {
			i, p := t.Next(), preset{trace.Category(t.Next()), trace.StringID(t.ID()), trace.StringID(t.ID())}
			if i >= uint64(len(list)) {
				t.Fail()
				return
			}
			list[i] = p
		}
	}
	if take("replay.names"); r.accounts.lookahead != nil {
		take("replay.foreseen")
	}
	return list
}

// restore brings back what keep kept, into a replay of nothing. The dictionary as of the keyframe must have been read.
func (r *replayer) restore(f *trace.Keyframe) error {
	a, s := &r.accounts, &f.State
	a.resolver.Libraries.Restore(s)
	a.links.Restore(s)
	a.resolver.Places.Restore(s)
	a.modules.Restore(s)
	lastAlloc := a.held.Restore(s)
	for i := range f.Live {
		if !a.links.Known(f.Live[i].PyStack) {
			return heap.ErrKeyframe
		}
	}
	counts := s.Table("replay.counts")
	a.estimated, a.runtimeOnly = counts.Next(), counts.Next()
	lastTime := counts.Signed()
	if counts.Bool() {
		a.requests.Begin(a.details[heap.AccountFramework])
	}
	ids, err := r.restoreBlocks(f)
	if err != nil {
		return err
	}
	r.lastTime, a.held.LastTimeNS = lastTime, lastAlloc
	r.device.Restore(s, a.resolver.Libraries.Len())
	r.allocator.Restore(s)
	r.parameters.Restore(s)
	if a.lookahead == nil {
		r.elements = training.RestoreElements(s)
	}
	r.ooms.Restore(s)
	if a.iterations != nil {
		a.iterations.Restore(s, ids)
	}
	r.restoreCounts(s, ids)
	if s.Failed() != "" {
		return heap.ErrKeyframe
	}
	return nil
}

// noBlock stands for the number of a block whose size is not known yet.
const noBlock = math.MaxUint32

// restoreBlocks returns the numbers of the blocks.
func (r *replayer) restoreBlocks(f *trace.Keyframe) (ids []uint32, err error) {
	a, called := &r.accounts, r.presets(f)
	ids, err = r.restoreHeap(f, func(i int, id uint32, b *heap.Block) {
		a.preset = &called[i]
		r.Opened(id, b, &f.Live[i])
	})
	a.preset = nil
	return ids, err
}

// restoreHeap brings back the heap, and returns the numbers of the blocks; opened gets their places in the list, too.
func (r *replayer) restoreHeap(f *trace.Keyframe, opened func(i int, id uint32, b *heap.Block)) ([]uint32, error) {
	ids := make([]uint32, len(f.Live))
	for i := range ids {
		ids[i] = noBlock
	}
	next := 0
	err := r.heap.Restore(f, nil, func(id uint32, b *heap.Block, e *trace.Event) {
		for &f.Live[next] != e { // one whose size is not known is no block yet
			next++
		}
		ids[next] = id
		opened(next, id, b)
	})
	return ids, err
}

func (r *replayer) restoreCounts(s *trace.State, ids []uint32) {
	a, meters := &r.accounts, s.Table("replay.meters")
	for account := range a.totals {
		d := a.details[account]
		if d == nil {
			profile.RestoreMeters(meters, &a.totals[account], new([]profile.DeviceMeter))
			continue
		}
		if profile.RestoreMeters(meters, &d.Total, &d.Devices); d.Total.Events() > 0 {
			a.heights[account].Set(d.Total.Current, r.lastTime)
		}
	}
	r.restoreThreads(s, ids)
}

func (r *replayer) restoreThreads(s *trace.State, ids []uint32) {
	clear(r.threads)
	for t := s.Table("replay.threads"); t.More(); {
		thread, i := t.Next(), t.Next()
		if thread > maxThreads || i >= uint64(len(ids)) {
			t.Fail()
			return
		}
		*r.latestOf(trace.ThreadID(thread)) = ids[i] + 1 // 0 for none
	}
}

// preset is what is known of a block of a keyframe beside its event.
type preset struct {
	category trace.Category
	name     trace.StringID
	module   trace.StringID
}

func (p *preset) keep(t *trace.Numbers, i int) {
	t.Put(uint64(i), uint64(p.category), uint64(p.name), uint64(p.module))
}

// keepClosing keeps what holds for the whole trace. Keyframes are found by marks and steps: by how many events come
// before the first of each.
func (k *keeper) keepClosing(s *trace.State, ahead *training.Lookahead) {
	if ahead != nil {
		ahead.Keep(s)
	}
	end := s.Table("replay.end")
	end.PutSigned(k.r.lastTime)
	end.PutBool(ahead != nil)
	marks, steps := s.Table("replay.marks"), s.Table("replay.steps")
	marks.PutBool(len(k.marks) <= maxKeptMoments)
	for _, id := range slices.Sorted(maps.Keys(k.marks)) {
		marks.PutText(k.r.accounts.resolver.Tables.String(id))
		marks.Put(k.marks[id])
	}
	steps.PutBool(len(k.steps) <= maxKeptMoments)
	for _, number := range slices.Sorted(maps.Keys(k.steps)) {
		steps.Put(number, k.steps[number])
	}
}
