package oom

import (
	"memtrace/cuda"
	"memtrace/internal/callstack"
	"memtrace/internal/device"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// replay follows no more than what OOM events are told by: the live blocks, and what the devices hold. It counts
// nothing by origin.
type replay struct {
	heap     *heap.Heap
	resolver profile.Resolver
	links    callstack.LinkedStacks
	devices  device.State
	tracker  Tracker
	named    namedBlocks
	driver   uint64 // live bytes
	lost     uint64 // records
}

// newReplay returns a replay of events whose dictionary is in tables. Its heap takes at most so many bytes outside of
// Go's.
func newReplay(tables *trace.Tables, most int64) *replay {
	r := &replay{}
	r.resolver = profile.Resolver{Tables: tables, Libraries: callstack.NewLibraries(tables),
		Stacks: callstack.NewStacks(tables, &r.links),
		Module: func(trace.StackID) trace.StringID { return 0 }}
	r.heap = heap.NewPackedHeap(r, most)
	r.tracker.Links = &r.links
	r.tracker.Resolver, r.tracker.Heap, r.tracker.Devices, r.tracker.Replay = &r.resolver, r.heap, &r.devices, r
	return r
}

// event replays one event.
func (r *replay) event(e *trace.Event) {
	switch e.Kind {
	case trace.EventAlloc, trace.EventFree:
		r.heap.Apply(e)
		if e.Level == cuda.LevelFramework && e.Status == 0 && heap.AccountOf(e) == heap.AccountFramework {
			r.devices.Report(e, r.resolver.Libraries, 0)
		}
	case trace.EventMap, trace.EventUnmap, trace.EventCreate, trace.EventDestroy:
		r.heap.Apply(e)
		r.devices.Changed(e, r.resolver.Libraries)
	case trace.EventReserve:
		if e.Flags&trace.FlagLate == 0 || !r.heap.Objects.EndedSince(e) {
			r.devices.Sizes.Reserve(e)
		}
	case trace.EventSample:
		r.devices.Samples.Add(e, r.heap, &r.devices.Sizes, r.resolver.Tables)
	case trace.EventName:
		if e.Addr != 0 && e.Category != trace.CategoryNone {
			r.named.named(e, r.heap)
		}
	case trace.EventLost:
		if n := e.Lost().Count; n > 0 {
			r.lost += n
			r.heap.LoseRecords()
		}
	}
	r.tracker.Event(e)
}

// Opened implements heap.Observer.
func (r *replay) Opened(id uint32, b *heap.Block, e *trace.Event) {
	r.named.opened(id)
	b.PyStack = r.links.Stack(e)
	r.devices.Opened(id, b, e.Pool, r.resolver.Libraries, 0)
	if b.OfPool() {
		r.resolver.Places.Of(0, e.Pool)
	}
	if b.Account == heap.AccountDriver {
		r.driver += b.Size
	}
}

// Claimed implements heap.Claimer.
func (r *replay) Claimed(id uint32, b *heap.Block, e *trace.Event) {
	name, _ := e.OwnPool()
	r.devices.Claimed(id, b, r.resolver.Tables.String(name), r.resolver.Libraries, 0)
}

// Closed implements heap.Observer.
func (r *replay) Closed(id uint32, b *heap.Block, _ *trace.Event) {
	r.devices.Closed(id, b, r.resolver.Libraries, 0)
	if b.Account == heap.AccountDriver {
		r.driver -= b.Size
	}
}

// LateAlloc implements heap.Observer.
func (r *replay) LateAlloc(b *heap.Block, e *trace.Event) { b.PyStack = r.links.Stack(e) }

// Refused implements heap.Observer.
func (r *replay) Refused(*trace.Event) {}

// Watches implements Replay.
func (r *replay) Watches(int16) bool { return true }

// DriverBytes implements Replay.
func (r *replay) DriverBytes() uint64 { return r.driver }

// LostRecords implements Replay.
func (r *replay) LostRecords() uint64 { return r.lost }

// CategoryOf implements Replay.
func (r *replay) CategoryOf(id uint32, b *heap.Block) string {
	return r.named.categoryOf(&r.resolver, id, b)
}

// ElementOf implements Replay.
func (r *replay) ElementOf(id uint32, _ *heap.Block) uint8 { return r.named.elementOf(id) }

// IsNewCode implements Replay. Inside of the program nobody compares iterations.
func (r *replay) IsNewCode(*heap.Block) bool { return false }

// Passing implements Replay.
func (r *replay) Passing(uint32) {}

// AtRefusal implements Replay.
func (r *replay) AtRefusal(int64) any { return nil }

// OOMEnded implements Replay.
func (r *replay) OOMEnded(int, string, any) {}
