package spool

import (
	"memtrace/cuda"
	"memtrace/trace"
)

// decode makes the committed record at off an event, in place: events are large to copy.
func (s *Spool) decode(e *trace.Event, off uint64, c *clock) {
	b := s.data[off : off+recordSize : off+recordSize]
	*e = trace.Event{
		Seq:     le64(b, recSeq),
		Time:    c.time(le64(b, recTicks)),
		Kind:    trace.EventKind(b[recKind]),
		Stack:   trace.StackID(le32(b, recStack)),
		PyStack: trace.StackID(le32(b, recPyStack)),
		Tag:     trace.StringID(le32(b, recTag)),
		API:     cuda.API(uint16(b[recAPI]) | uint16(b[recAPI+1])<<8),
	}
	e.Level = e.API.Level()
	switch e.Kind {
	case trace.EventMark:
		e.Name = trace.StringID(le32(b, recReserved))
		return
	case trace.EventStep, trace.EventEpoch:
		e.Count = le64(b, recSize)
		return
	case trace.EventSample:
		sample(e, b)
		return
	case trace.EventName:
		name(e, b)
		return
	case trace.EventWait, trace.EventComplete, trace.EventEmptyCache, trace.EventPool, trace.EventSetting:
		allocator(e, b)
		return
	}
	e.Device = int16(int8(b[recDevice]))
	e.Addr, e.Size = le64(b, recAddr), le64(b, recSize)
	if e.Level == cuda.LevelFramework && ownPool(e, b) {
		return
	}
	if e.Level == cuda.LevelFramework {
		e.Allocated, e.Reserved = le64(b, recUnion)&countMask, le64(b, recReserved)&countMask
		op := le64(b, recUnion)>>countBits | le64(b, recReserved)>>countBits<<opHalf
		e.Op, e.OpThread = uint32(op)&(1<<opBits-1), uint16(op>>opBits)&(1<<opThreadBits-1)
		if op&opBackward != 0 {
			e.Flags = trace.FlagBackward
		}
		if e.Kind != trace.EventOOM { // nothing shares the word with a refused size, which may be any
			e.Rest = e.Size>>countBits | uint64(e.Tag>>idBits)<<restLow
			e.Size &= countMask
		}
		e.Tag &= 1<<idBits - 1
		if place := uint32(e.Stack)>>idBits | uint32(e.PyStack)>>idBits<<placeLow; place != 0 {
			e.Stack, e.PyStack = e.Stack&(1<<idBits-1), e.PyStack&(1<<idBits-1)
			e.Stream, e.Pool = s.place(place)
		}
		e.Mem = cuda.MemoryDevice
		return
	}
	// A runtime call that was recorded itself stands for the driver event that could not be seen.
	e.Level = cuda.LevelDriver
	e.Status = int32(le32(b, recStatus))
	e.Runtime = cuda.API(uint16(b[recRuntime]) | uint16(b[recRuntime+1])<<8)
	e.Flags = trace.Flags(b[recFlags])
	switch e.Kind {
	case trace.EventAsk:
		e.Addr, e.Allocated = 0, e.Addr
		return
	case trace.EventCreate, trace.EventDestroy, trace.EventLaunch:
		e.Object = cuda.ObjectKind(b[recMem])
		return
	case trace.EventReserve:
		e.Object, e.Allocated = cuda.ObjectKind(b[recMem]), le64(b, recUnion)
		e.Runtime, e.Status, e.Stack, e.PyStack, e.Tag = 0, 0, 0, 0, 0
		return
	}
	e.Mem = cuda.MemoryKind(b[recMem])
	switch {
	case e.Kind == trace.EventMap, e.Kind == trace.EventAlloc && e.Mem != cuda.MemoryAsync:
		e.Handle = le64(b, recUnion)
	default:
		e.Stream = le64(b, recUnion)
	}
}

// A framework's counts of bytes share their words with the halves of the operator: from below its number, its thread
// and a flag.
const (
	countBits    = 44
	countMask    = 1<<countBits - 1
	opHalf       = 20
	opBits       = 26
	opThreadBits = 13
	opBackward   = 1 << (opBits + opThreadBits)
)

// So does what a block has beyond the request: its lower bits with the size, its upper ones with the tag.
const (
	idBits  = 19
	restLow = 20
)

// And where a block was allocated: the id of its place, in the upper bits of its stacks' ids.
const placeLow = 13

// place looks up the stream and the private pool that a place stands for.
func (s *Spool) place(id uint32) (stream uint64, pool uint32) {
	off := s.indexOffset + uint64(id-1)*indexEntrySize
	if id > s.indexMax || !s.data.in(off, indexEntrySize) || s.data.load32(off) != dictPlace ||
		s.data.u32(off+4) != 16 {
		return 0, 0 // only a damaged file has such an id
	}
	at := s.data.u64(off + 8)
	if at > s.dataMax || 16 > s.dataMax-at || !s.data.in(s.dataOffset+at, 16) {
		return 0, 0
	}
	return s.data.u64(s.dataOffset + at), poolOf(s.data.u64(s.dataOffset + at + 8))
}

// poolOf narrows a pool's number: one that is too large for the field stands for all such.
func poolOf(number uint64) uint32 { return uint32(min(number, trace.OwnPool-1)) }

// ownPool completes what the program reports of a pool of its own, and returns false for every other event.
func ownPool(e *trace.Event, b []byte) bool {
	switch e.API {
	case apiPoolAlloc, apiPoolFree:
		e.Handle, e.Pool = le64(b, recUnion), trace.OwnPool|le32(b, recReserved)
		e.Mem = cuda.MemoryDevice
		if e.Device < 0 {
			e.Mem = cuda.MemoryHost
		}
	case apiPoolDestroy:
		e.Size, e.Object = 0, cuda.ObjectOwnPool
	default:
		return false
	}
	return true
}

var (
	apiPoolAlloc, _   = cuda.ParseAPI("memtrace_pool_alloc")
	apiPoolFree, _    = cuda.ParseAPI("memtrace_pool_free")
	apiPoolDestroy, _ = cuda.ParseAPI("memtrace_pool_destroy")
)

// allocator completes what a framework's allocator was told, or did beside its blocks.
func allocator(e *trace.Event, b []byte) {
	e.API, e.Level = 0, 0
	e.Device = int16(int8(b[recDevice]))
	switch e.Kind {
	case trace.EventWait:
		e.Addr, e.Size, e.Handle, e.Stream = le64(b, recAddr), le64(b, recSize), le64(b, recUnion), le64(b, recReserved)
	case trace.EventComplete:
		e.Device, e.Handle = 0, le64(b, recUnion)
	case trace.EventEmptyCache:
		e.Count = le64(b, recSize)
		return
	case trace.EventPool:
		e.Count, e.Pool = le64(b, recSize), poolOf(le64(b, recUnion))
	case trace.EventSetting:
		e.Count, e.Name = le64(b, recSize), trace.StringID(le32(b, recReserved))
	}
	e.Tag, e.Stack, e.PyStack = 0, 0, 0
}

// name completes what a framework calls its memory.
func name(e *trace.Event, b []byte) {
	e.Category, e.Name, e.Handle = trace.Category(e.API), trace.StringID(le32(b, recReserved)), le64(b, recUnion)
	switch e.API >> elementShift {
	case 1:
		e.Flags = trace.FlagOneByte
	case 2:
		e.Flags = trace.FlagTwoBytes
	}
	e.Addr, e.Size = le64(b, recAddr), le64(b, recSize)
	e.API, e.Level, e.Tag, e.Stack, e.PyStack = 0, 0, 0, 0, 0
}

// sample completes what the device reported.
func sample(e *trace.Event, b []byte) {
	e.API, e.Level, e.Tag, e.Stack, e.PyStack = 0, 0, 0, 0, 0
	e.Device = int16(int8(b[recDevice]))
	e.Count, e.Size, e.Allocated, e.Reserved = le64(b, recAddr), le64(b, recSize), le64(b, recUnion),
		le64(b, recReserved)
	e.Name, e.Flags = trace.StringID(le32(b, recStack)), trace.Flags(le32(b, recPyStack))
}

func le32(b []byte, at int) uint32 {
	return uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16 | uint32(b[at+3])<<24
}

func le64(b []byte, at int) uint64 { return uint64(le32(b, at)) | uint64(le32(b, at+4))<<32 }
