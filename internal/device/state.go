package device

import (
	"memtrace/internal/callstack"
	"memtrace/internal/heap"
	"memtrace/internal/profile"
	"memtrace/trace"
)

// State is what the devices hold as of the event that was replayed last: driver memory by library, what frameworks
// count, how much of a device that takes, and what the devices themselves said. The zero value is that of the
// beginning.
type State struct {
	Holdings Holdings
	Sizes    Sizes
	Samples  Samples
	Pools    Pools
	Segments *Segments // nil: they are not collected

	claims map[uint64]uint32 // who holds driver memory that is a pool's of the program's own, by its order number
}

// Opened takes in a new block; pool is the private pool that it came from, 0 the common one. epoch is that of the
// framework's total, by which peaks are told.
func (s *State) Opened(id uint32, b *heap.Block, pool uint32, libraries *callstack.Libraries, epoch uint64) {
	switch b.Account {
	case heap.AccountDriver:
		s.Segments.opened(id, b, libraries)
		s.Holdings.OpenDriver(profile.DeviceSlot(b.Device), libraries.Of(b.Stack), b, epoch)
		s.Sizes.Opened(b)
	case heap.AccountFramework:
		if s.Segments != nil && !s.Segments.begun {
			s.Segments.begin(func(b *heap.Block) uint32 { return s.HolderOf(b, libraries) })
		}
		if !b.OfPool() { // what a pool of the program's own hands out is in no framework's counters
			s.Holdings.Device(profile.DeviceSlot(b.Device)).Blocks += b.Size
			s.Pools.Opened(b, pool)
		}
	}
}

// Changed takes in a mapping of a handle, or the end of an object, after the heap.
func (s *State) Changed(e *trace.Event, libraries *callstack.Libraries) {
	s.Segments.follow(e, libraries)
	switch {
	case e.Kind == trace.EventDestroy:
		s.Sizes.Forget(e)
	case e.Kind == trace.EventMap && e.Status == 0:
		s.Holdings.Mapped()
	}
}

// Closed takes in the end of a block.
func (s *State) Closed(id uint32, b *heap.Block, libraries *callstack.Libraries, epoch uint64) {
	switch b.Account {
	case heap.AccountDriver:
		s.Segments.closed(id)
		s.Holdings.CloseDriver(profile.DeviceSlot(b.Device), s.HolderOf(b, libraries), b.Size, epoch)
		s.Sizes.Closed(b)
		if b.IsClaimed() {
			delete(s.claims, b.Seq)
		}
	case heap.AccountFramework:
		if !b.OfPool() {
			s.Holdings.Device(profile.DeviceSlot(b.Device)).Blocks -= b.Size
		}
	}
}

// Claimed takes in that from now on driver memory is that of a pool of the program's own, which is returned as the
// number that a library would have.
func (s *State) Claimed(id uint32, b *heap.Block, pool string, libraries *callstack.Libraries, epoch uint64) uint32 {
	holder := libraries.Pool(pool)
	s.Holdings.Claim(profile.DeviceSlot(b.Device), libraries.Of(b.Stack), holder, b, epoch)
	if s.claims == nil {
		s.claims = make(map[uint64]uint32)
	}
	s.claims[b.Seq] = holder
	s.Segments.claimed(id, b, holder)
	return holder
}

// HolderOf returns who holds a block of driver memory: the library that took it, or a pool of the program's own.
func (s *State) HolderOf(b *heap.Block, libraries *callstack.Libraries) uint32 {
	if b.IsClaimed() {
		return s.claims[b.Seq]
	}
	return libraries.Of(b.Stack)
}

// Report takes in the counters of a framework's event. epoch is that of the framework's total before the event.
func (s *State) Report(e *trace.Event, libraries *callstack.Libraries, epoch uint64) {
	if _, own := e.OwnPool(); own {
		s.Holdings.Device(profile.DeviceSlot(e.Device)).Seen = e.Seq
		return
	}
	s.ReportFrom(e.Stack, libraries)
	if e.Flags&trace.FlagLate != 0 {
		s.Holdings.ReportLate(e.Device, e.Seq)
		return
	}
	s.Holdings.Report(e.Device, e.Seq, e.Allocated, e.Reserved, epoch)
}

// ReportFrom looks for the library that makes the framework's reports, until it is known.
func (s *State) ReportFrom(stack trace.StackID, libraries *callstack.Libraries) {
	if s.Holdings.Library == callstack.UnknownLibrary {
		s.Holdings.Library = libraries.Of(stack)
	}
}
