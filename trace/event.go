package trace

import (
	"slices"

	"memtrace/cuda"
)

// EventKind says what happened. Numbers are append-only: an obsolete kind keeps its row in the spec table.
type EventKind uint8

// The event kinds. Which fields each carries stands in the EventSpec table (spec.go).
const (
	EventNone  EventKind = 0
	EventAlloc EventKind = 1 // memory appeared, or (Status != 0) was refused
	EventFree  EventKind = 2 // memory was given back, or (Status != 0) the call failed and the block lives on
	EventMap   EventKind = 3 // a VMM handle was mapped at an address
	EventUnmap EventKind = 4 // a VMM mapping ended
	EventOOM   EventKind = 5 // a framework's allocator gave up
	EventMark  EventKind = 6 // a named moment set by the program
	EventStep  EventKind = 7 // an iteration began, set by the program
	EventEpoch EventKind = 8 // an epoch began, set by the program
	EventLost  EventKind = 9 // records that were dropped because no room was left, see lost.go

	// an object that owns memory came to be (Object says which), or was noticed for the first time
	EventCreate  EventKind = 10
	EventDestroy EventKind = 11 // an object ended, and with it what it owned
	EventReserve EventKind = 12 // what a memory pool holds from its device at this moment
	EventLaunch  EventKind = 13 // a graph with allocation nodes was launched
	EventSample  EventKind = 14 // what the device reports about its memory
	EventName    EventKind = 15 // what the framework calls bytes, or one of its objects, at this moment

	// a framework's block, whose free follows, waits for an event of a stream that used it, and is not lent again
	// before
	EventWait       EventKind = 16
	EventComplete   EventKind = 17 // an event that blocks waited for is complete
	EventEmptyCache EventKind = 18 // the framework's allocator was told to give back what it keeps, or has done so
	EventAsk        EventKind = 19 // the program asked how much memory is free
	EventPool       EventKind = 20 // the framework's allocator takes blocks from a private pool, or no more
	EventSetting    EventKind = 21 // the framework's allocator was given settings

	eventKindCount = 22
)

// Known reports whether events of this version may be of the kind.
func (k EventKind) Known() bool { return k > EventNone && k < eventKindCount }

// Ids name entries of the trace's dictionary; zero means none. They share one number space, as the recorder hands them
// out.
type (
	// StringID names an interned string: a tag path, a mark's name.
	StringID uint32
	// StackID names an interned call stack: a list of code addresses, innermost first.
	StackID uint32
	// ThreadID names a thread of the program.
	ThreadID uint32
	// ModuleID names a loaded object file.
	ModuleID uint32
)

// Flags are facts about one event that no other field carries.
type Flags uint8

// The event flags. Bits are append-only.
const (
	// FlagLate marks an event whose Seq is below an earlier block's watermark: it happened before events that stand
	// before it in the file.
	FlagLate Flags = 1 << 0
	// FlagRuntimeOnly marks a driver-level event that was seen only at the runtime's surface, so its size is what the
	// caller asked for.
	FlagRuntimeOnly Flags = 1 << 1
	// FlagEstimated marks a size that the recorder computed instead of reading it from the call.
	FlagEstimated Flags = 1 << 2
	// FlagReference marks an alloc that is one more reference to memory that exists, and a destroy that took one of
	// several references away.
	FlagReference Flags = 1 << 3
	// FlagNoticed marks a create event of an object that existed before: it was noticed in the call that API names.
	FlagNoticed Flags = 1 << 4
	// FlagUnsettled marks a sample during which memory changed, so that it fits no single moment.
	FlagUnsettled Flags = 1 << 5
	// FlagShareUnknown marks a sample in which the device does not say what the process itself uses.
	FlagShareUnknown Flags = 1 << 6
	// FlagBackward marks a framework alloc whose Op is the number of the operator whose backward runs, not of one that
	// runs itself.
	FlagBackward Flags = 1 << 7
	// FlagTwoBytes and FlagOneByte mark names of tensors whose elements have so many bytes. Others have more, or it is
	// not known.
	FlagTwoBytes = FlagShareUnknown
	FlagOneByte  = FlagBackward
)

// What Count says of emptycache and pool events, which come in pairs.
const (
	Begun = 1
	Ended = 2
)

// Event is one recorded fact. It is a plain value: readers hand out slices of Events that stay valid until the next
// read. Fields that the kind's EventSpec does not list are zero.
type Event struct {
	Seq  uint64 // total order over all threads, dense from 1; a gap is a lost record
	Time int64  // nanoseconds since the trace's time base (Info "clock.base_unix_ns")
	Addr uint64 // device or host address; for VMM memory the handle
	Size uint64 // bytes asked for; for framework blocks the rounded block size
	// CUDA stream handle as the program passed it, 0 the default stream; framework allocs: the stream that the block
	// was allocated for
	Stream uint64
	// framework events: bytes the framework says are allocated on the device after this event; reserve: bytes in use;
	// sample: the process's own; ask: bytes free
	Allocated uint64
	// framework events: bytes the framework says it holds from the driver after this event; sample: bytes the driver
	// keeps for itself
	Reserved uint64
	// map events: the VMM handle; allocs: the owner, a context, a graph or a pool of the program's own, 0 unknown;
	// names: address of the framework's object; wait, complete: the event
	Handle uint64
	// lost events: number of records; step and epoch events: the number given by the program; sample: bytes of other
	// processes; emptycache, pool: Begun or Ended; setting: its value
	Count   uint64
	Stack   StackID  // native call stack, innermost frame first
	PyStack StackID  // Python call stack
	Tag     StringID // full tag path active on the thread
	Name    StringID // marks and names: the text
	Thread  ThreadID // who
	Status  int32    // CUDA error code, 0 success
	// framework allocs: 1 + the bytes of the block beyond those that were requested, 0 unknown
	Rest uint64
	// framework allocs and ooms: 1 + the number of the operator that runs, or with FlagBackward of the one whose
	// backward runs; 0 none
	Op uint32
	// with Op: the framework's own number of the thread that recorded the operator, 0 unknown; numbers of operators are
	// each thread's own
	OpThread uint16
	API      cuda.API        // the call that made the event at its own level
	Runtime  cuda.API        // the CUDA runtime call around a driver event, or none
	Device   int16           // device ordinal in the process, -1 for host memory or unknown
	Kind     EventKind       //
	Level    cuda.Level      //
	Mem      cuda.MemoryKind //
	Flags    Flags           //
	Object   cuda.ObjectKind // create, destroy, reserve, launch: what Addr is the handle of
	Category Category        // names: what the framework takes Addr, or the object Handle, for
	// framework allocs and pool events: private pool of the framework's allocator, 0 the common one; or, from OwnPool
	// on, a pool of the program's own
	Pool uint32
}

// OwnPool in an event's Pool says that the block is one of a pool of the program's own, and the bits below it are the
// id of that pool's name. Handle tells pools of one name apart.
const OwnPool = 1 << 31

// OwnPool returns the name of the pool of the program's own that the event is about.
func (e *Event) OwnPool() (name StringID, is bool) {
	if e.Pool&OwnPool == 0 {
		return 0, false
	}
	return StringID(e.Pool &^ OwnPool), true
}

// WideElement is the bytes of an element that has neither one nor two.
const WideElement = 4

// ElementBytes is how many bytes an element of a named tensor has: 1, 2 or WideElement.
func (e *Event) ElementBytes() uint8 {
	switch {
	case e.Flags&FlagOneByte != 0:
		return 1
	case e.Flags&FlagTwoBytes != 0:
		return 2
	}
	return WideElement
}

// Category says what a framework's own bookkeeping takes an address for. Numbers are part of the trace format: append
// only.
type Category uint8

// The categories. Bytes of a layer's parameters, their gradients and what an optimizer keeps for them are named by the
// framework's qualified name of the parameter.
const (
	CategoryNone      Category = 0
	CategoryModule    Category = 1 // no memory: the object whose method a Python frame runs
	CategoryParameter Category = 2
	CategoryBuffer    Category = 3 // of a module, without a gradient
	CategoryGradient  Category = 4 // of a parameter
	CategoryOptimizer Category = 5 // the name is that of the state, a colon, and the parameter's
	CategoryStep      Category = 6 // no memory: an optimizer finished a step
	CategoryData      Category = 7 // what goes into a model or comes out of it
	// nothing from now on: what the block held is gone, its allocator keeps the block for something else
	CategoryFree Category = 8

	categoryCount = 9
)

var categoryNames = [categoryCount]string{"none", "module", "parameter", "buffer", "gradient", "optimizer", "step",
	"data", "free"}

// String returns the category's name as it appears in the text form of a trace.
func (c Category) String() string {
	if int(c) < len(categoryNames) {
		return categoryNames[c]
	}
	return "unknown"
}

// ParseCategory is the inverse of String; ok is false for a name that no category has.
func ParseCategory(name string) (c Category, ok bool) {
	i := slices.Index(categoryNames[:], name)
	return Category(max(i, 0)), i >= 0
}
