package analyzer

import (
	"errors"
	"fmt"
	"slices"

	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/internal/training"
	"memtrace/trace"
)

// A bookmark is all that a replay of a run has come to know, so that a later one goes on where this one rests: unlike
// a keyframe, which windows begin at, it has the peaks and all that was counted since the run's beginning. Its tables
// begin with "run.", and with the names of keyframes for what both have.

// ErrBookmark is wrapped by errors that say why a replay cannot go on from a bookmark: the trace is to be read from
// its beginning, by another Profile.
var ErrBookmark = errors.New("the bookmark is not of this trace")

// maxBookmarkBlocks bounds the live blocks of a bookmark, each of which takes some 250 bytes while it is made.
const maxBookmarkBlocks = 1 << 20

// Bookmark returns what is known of the run, at the end of an Update; nil where a bookmark cannot hold that: with
// filters, windows, training and what goes by them, where records were lost or parts are damaged, while an attempt to
// get memory is open, with pools of the program's own, and with more than 65,536 origins of blocks or
// a million live ones.
func (p *Profile) Bookmark() *trace.Keyframe {
	src, ok := p.src.(trace.Bookmarked)
	r := p.replayer
	if !ok || !r.goesOn() || !r.canKeep() || r.losses.count > 0 || r.heap.Len() > maxBookmarkBlocks {
		return nil
	}
	f := &trace.Keyframe{KeyframePlace: trace.KeyframePlace{Events: src.Health().Events}}
	if !src.KeepReading(&f.State) || (runState{r}).keep(f) != nil {
		return nil
	}
	return f
}

// GoOn lets the first Update begin at a bookmark. That Update returns ErrBookmark if it is one of another trace,
// or of another question.
func (p *Profile) GoOn(f *trace.Keyframe) error {
	src, ok := p.src.(trace.Bookmarked)
	if !ok || !p.replayer.goesOn() || !src.GoOnReading(&f.State) {
		return ErrBookmark
	}
	p.replayer.bookmark = f
	return nil
}

// goesOn reports whether the replay is one that a bookmark can hold, whatever it read.
func (r *replayer) goesOn() bool {
	a := &r.accounts
	plain := r.window == nil && a.filter == nil && a.kept != nil && a.iterations == nil && a.lookahead == nil &&
		r.watcher == nil && r.device.Segments == nil && r.moments.want.FoundAfterwards() &&
		len(r.figures.list) == r.figures.own
	return plain && a.details[heap.AccountDriver].Cells.CanKeep() && a.details[heap.AccountFramework].Cells.CanKeep()
}

// runState is all that a replay knows, for a bookmark.
type runState struct{ *replayer }

func (r runState) keep(f *trace.Keyframe) error {
	s, a := &f.State, &r.accounts
	var order []uint32
	r.heap.Each(func(id uint32, _ *heap.Block) { order = append(order, id) })
	a.resolver.Libraries.Keep(s)
	a.links.Keep(s)
	a.resolver.Places.Keep(s)
	a.modules.Keep(s)
	r.keepAccounts(s)
	live := s.Table("run.live")
	r.heap.Keep(order, func(id uint32, b *heap.Block) trace.Event {
		if a.details[b.Account] != nil && int(id) < a.live.Len() {
			at := a.live.At(id)
			live.Put(at.Opened, uint64(at.Cell), uint64(at.Rest))
		} else {
			live.Put(0, 0, 0)
		}
		return allocationOf(b)
	}, f)
	r.device.Keep(s)
	r.allocator.Keep(s)
	r.allocator.KeepRun(s)
	r.elements.Keep(s)
	r.ooms.Keep(s)
	r.keepThreads(s, order)
	return errors.Join(r.device.KeepRun(s), r.ooms.KeepRun(s), r.keepFigures(s))
}

// keepAccounts keeps what blocks are counted by, and what all counts are of.
func (r runState) keepAccounts(s *trace.State) {
	a := &r.accounts
	counts, meters, heights := s.Table("run.counts"), s.Table("run.meters"), s.Table("run.heights")
	counts.PutBool(r.ooms.Places)
	counts.Put(uint64(len(a.bounds)))
	counts.Put(a.bounds...)
	counts.Put(a.estimated, a.runtimeOnly)
	counts.PutSigned(r.lastTime)
	for account := range a.totals {
		if d := a.details[account]; d != nil {
			d.Keep(meters)
		} else {
			a.totals[account].Keep(meters)
		}
		meters.Put(a.implicit[account].Count, a.implicit[account].Bytes)
		a.heights[account].Keep(heights)
	}
	a.requests.Keep(s.Table("run.requests"))
	a.held.KeepRun(s.Table("run.held"))
}

// goOn brings back the bookmark before the first events, once the source has come to it.
func (r *replayer) goOn(src trace.Source) error {
	f := r.bookmark
	if f == nil {
		return nil
	}
	r.bookmark = nil
	if !src.(trace.Bookmarked).CameBack() {
		return ErrBookmark
	}
	if err := (runState{r}).restore(f); err != nil {
		return fmt.Errorf("%w: %w", ErrBookmark, err)
	}
	if table := f.State.Failed(); table != "" {
		return fmt.Errorf("%w: table %s", ErrBookmark, table)
	}
	return nil
}

func (r runState) restore(f *trace.Keyframe) error {
	s, a := &f.State, &r.accounts
	a.resolver.Libraries.Restore(s)
	a.links.Restore(s)
	a.resolver.Places.Restore(s)
	a.modules.Restore(s)
	if !r.restoreAccounts(s) {
		return heap.ErrKeyframe
	}
	live, wrong := s.Table("run.live"), false
	ids, err := r.restoreHeap(f, r.reopen(f, live, &wrong))
	if err != nil || wrong || len(s.Failed()) > 0 {
		return errors.Join(heap.ErrKeyframe, err)
	}
	r.device.Restore(s, a.resolver.Libraries.Len())
	r.device.RestoreRun(s)
	r.allocator.Restore(s)
	r.allocator.RestoreRun(s)
	r.elements = training.RestoreElements(s)
	r.ooms.Restore(s)
	r.ooms.RestoreRun(s)
	r.restoreThreads(s, ids)
	r.restoreFigures(s)
	return nil
}

func (r runState) restoreAccounts(s *trace.State) (same bool) {
	a := &r.accounts
	counts, meters, heights := s.Table("run.counts"), s.Table("run.meters"), s.Table("run.heights")
	places, bounds := counts.Bool(), make([]uint64, min(counts.Next(), profile.MaxSizeClasses))
	for i := range bounds {
		bounds[i] = counts.Next()
	}
	if places != r.ooms.Places || !slices.Equal(bounds, a.bounds) {
		return false
	}
	a.estimated, a.runtimeOnly, r.lastTime = counts.Next(), counts.Next(), counts.Signed()
	for account := range a.totals {
		if d := a.details[account]; d != nil {
			d.Restore(meters, a.resolver.Places.Len())
		} else {
			a.totals[account].Restore(meters)
		}
		a.implicit[account].Count, a.implicit[account].Bytes = meters.Next(), meters.Next()
		a.heights[account].Restore(heights)
	}
	a.requests.Restore(s.Table("run.requests"))
	a.held.RestoreRun(s.Table("run.held"))
	return s.Failed() == ""
}

// reopen returns what opens the live blocks again: they are counted already, and belong to cells that are there.
func (r runState) reopen(f *trace.Keyframe, live *trace.Numbers, wrong *bool) func(int, uint32, *heap.Block) {
	a, next := &r.accounts, 0
	return func(i int, id uint32, b *heap.Block) {
		for ; next < i; next++ { // those whose size is not known are no blocks yet
			live.Next()
			live.Next()
			live.Next()
		}
		next++
		at := profile.LiveBlock{Opened: live.Next(), Cell: live.ID(), Rest: live.ID()}
		b.PyStack = f.Live[i].PyStack
		d := a.details[b.Account]
		if *wrong = *wrong || !a.links.Known(b.PyStack) || d != nil && int(at.Cell) >= len(d.Cells.List); *wrong {
			return
		}
		r.device.Opened(id, b, 0, a.resolver.Libraries, 0)
		if d != nil {
			heap.Slot(&d.Devices, profile.DeviceSlot(b.Device))
			*a.live.Slot(id) = at
		}
	}
}
