package trace

//go:generate go run ../tools/genformat -doc ../docs/format.md

// Field names one column of an event block. Numbers are append-only and are written to disk.
type Field uint8

// The fields, in the order in which columns stand in a block.
const (
	FieldSeq Field = iota
	FieldTime
	FieldThread
	FieldLevel
	FieldAPI
	FieldRuntime
	FieldMem
	FieldDevice
	FieldAddr
	FieldSize
	FieldStream
	FieldStatus
	FieldFlags
	FieldStack
	FieldPyStack
	FieldTag
	FieldAllocated
	FieldReserved
	FieldHandle
	FieldName
	FieldCount
	FieldObject
	FieldCategory
	FieldOp
	FieldOpThread
	FieldRest
	FieldPool

	fieldCount
)

// Encoding says how the values of a column become bytes before compression.
type Encoding uint8

// The encodings, explained in EncodingSpecs. Every column restarts in every block, so that a block can be read alone.
// Numbers are append-only and are written to disk with each column, so that a writer may choose another encoding for a
// field without a new format version.
const (
	EncodingDelta   Encoding = 0
	EncodingPlain   Encoding = 1
	EncodingRun     Encoding = 2
	EncodingStep    Encoding = 3
	EncodingTable   Encoding = 4
	EncodingSame    Encoding = 5
	EncodingAccount Encoding = 6
	EncodingBalance Encoding = 7

	encodingCount = 8
)

// EncodingSpec describes one encoding, for docs/format.md.
type EncodingSpec struct {
	Encoding  Encoding
	Name, Doc string
}

// EncodingSpecs is indexed by Encoding.
var EncodingSpecs = [encodingCount]EncodingSpec{
	{EncodingDelta, "delta", "zigzag varint of the difference to the value before (the first: to 0)"},
	{EncodingPlain, "plain", "varint of the value, zigzag if the field is signed"},
	{EncodingRun, "run", "pairs: run length (at least 1), value (zigzag if the field is signed)"},
	{EncodingStep, "step",
		"pairs: number of values (at least 1), zigzag difference of each to the value before"},
	{EncodingTable, "table",
		"0 and the zigzag difference to the last new value, which gets the next number from 0; or 1 + the number of a value that was new earlier in the block"},
	{EncodingSame, "same", "predicted from the last value in the slot of the event's kind and level"},
	{EncodingAccount, "account", "predicted from the last value in the slot of the event's level and device"},
	{EncodingBalance, "balance",
		"as account, plus the size of a successful alloc, minus the size of a successful free"},
}

// String returns the encoding's name, or "unknown".
func (e Encoding) String() string {
	if int(e) < len(EncodingSpecs) {
		return EncodingSpecs[e].Name
	}
	return "unknown"
}

// FieldSpec describes one field: its name in the text form, its encoding, and what it means, for docs/format.md.
type FieldSpec struct {
	Field    Field
	Name     string
	Encoding Encoding
	Signed   bool
	Unit     string
	Doc      string
}

// FieldSpecs is indexed by Field.
var FieldSpecs = [fieldCount]FieldSpec{
	{FieldSeq, "seq", EncodingStep, false, "", "order number over all threads, dense from 1; a gap is a lost record"},
	{FieldTime, "time", EncodingDelta, true, "ns", "time since the trace's time base"},
	{FieldThread, "thread", EncodingRun, false, "id", "thread that made the call"},
	{FieldLevel, "level", EncodingRun, false, "", "driver, runtime or framework"},
	{FieldAPI, "api", EncodingSame, false, "", "the call that made the event at its own level"},
	{FieldRuntime, "runtime", EncodingSame, false, "", "the CUDA runtime call around a driver event"},
	{FieldMem, "mem", EncodingSame, false, "", "kind of memory"},
	{FieldDevice, "device", EncodingRun, true, "", "device ordinal in the process; -1 host or unknown"},
	{FieldAddr, "addr", EncodingTable, false, "", "address; for VMM memory the handle"},
	{FieldSize, "size", EncodingPlain, false, "bytes",
		"size asked for; framework blocks: the rounded block; lost: 1 + records that ended memory"},
	{FieldStream, "stream", EncodingRun, false, "",
		"CUDA stream handle as passed; framework blocks: the stream that they were allocated for"},
	{FieldStatus, "status", EncodingRun, true, "", "CUDA error code; 0 success"},
	{FieldFlags, "flags", EncodingRun, false, "bits",
		"1 late, 2 runtime only, 4 estimated size, 8 a reference more or less, 16 noticed, 32 unsettled sample, 64 the process's share is unknown, 128 backward; of a name: 64 elements of two bytes, 128 of one"},
	{FieldStack, "stack", EncodingPlain, false, "id", "native call stack"},
	{FieldPyStack, "pystack", EncodingPlain, false, "id", "Python call stack"},
	{FieldTag, "tag", EncodingRun, false, "id", "full tag path"},
	{FieldAllocated, "allocated", EncodingBalance, false, "bytes",
		"the framework's own count of allocated bytes after the event; ask: bytes that were free"},
	{FieldReserved, "reserved", EncodingAccount, false, "bytes",
		"the framework's own count of reserved bytes after the event"},
	{FieldHandle, "handle", EncodingSame, false, "",
		"VMM handle of a mapping; owner of an allocation (context, graph or the program's pool); address of a framework's object; lost: an order number; wait, complete: the event"},
	{FieldName, "name", EncodingPlain, false, "id",
		"name of a mark, of bytes or of an object; occasion of a sample; text of a setting"},
	{FieldCount, "count", EncodingPlain, false, "",
		"lost records, the step's or epoch's number, bytes of other processes; emptycache and pool: 1 begun, 2 ended; setting: its value as the bits of a 64-bit float"},
	{FieldObject, "object", EncodingRun, false, "", "kind of object whose handle addr is"},
	{FieldCategory, "category", EncodingRun, false, "", "what the framework takes the bytes or the object for"},
	{FieldOp, "op", EncodingSame, true, "",
		"1 + number of the framework's operator that allocates or is refused, or with flag backward of the one whose backward does; 0 none"},
	{FieldOpThread, "opthread", EncodingSame, false, "",
		"the framework's number of the thread that recorded op and counted it; 0 unknown"},
	{FieldRest, "rest", EncodingPlain, false, "bytes",
		"1 + the bytes of a framework's block beyond those requested (rounding, unsplit remainder); 0 unknown"},
	{FieldPool, "pool", EncodingRun, false, "",
		"private pool of the framework's allocator: 2 n for its pool (n, 0), 2 n + 1 for (0, n); 0 the common one; from 2^31 on a pool of the program's own, the lower bits the id of its name"},
}

// EventSpec lists the fields of one event kind, in column order. It drives the writer, the reader, the text form and
// docs/format.md.
type EventSpec struct {
	Kind   EventKind
	Name   string
	Since  uint32 // first format version that has the kind
	Fields []Field
	Doc    string
}

var memoryFields = []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldRuntime, FieldMem, FieldDevice,
	FieldAddr, FieldSize, FieldStream,
	FieldStatus, FieldFlags, FieldStack, FieldPyStack, FieldTag, FieldAllocated, FieldReserved, FieldHandle, FieldOp,
	FieldOpThread, FieldRest, FieldPool}

var objectFields = []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldRuntime, FieldDevice, FieldAddr,
	FieldSize, FieldStatus, FieldFlags, FieldStack,
	FieldPyStack, FieldTag, FieldObject}

// EventSpecs is indexed by EventKind.
var EventSpecs = [eventKindCount]EventSpec{
	{EventNone, "none", 1, nil, "never written"},
	{EventAlloc, "alloc", 1, memoryFields, "memory appeared, or was refused (status)"},
	{EventFree, "free", 1, memoryFields,
		"memory was given back; with a status, the call failed and the block lives on"},
	{EventMap, "map", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldDevice, FieldAddr,
		FieldSize, FieldStatus, FieldFlags, FieldStack, FieldPyStack, FieldTag, FieldHandle},
		"a VMM handle was mapped at addr"},
	{EventUnmap, "unmap", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldDevice, FieldAddr,
		FieldSize, FieldStatus, FieldFlags, FieldStack, FieldPyStack, FieldTag},
		"a VMM mapping ended"},
	{EventOOM, "oom", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldDevice, FieldSize,
		FieldFlags, FieldStack, FieldPyStack, FieldTag, FieldAllocated, FieldReserved, FieldOp, FieldOpThread},
		"a framework's allocator gave up after trying everything"},
	{EventMark, "mark", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldFlags, FieldTag, FieldName},
		"a named moment set by the program"},
	{EventStep, "step", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldFlags, FieldTag, FieldCount},
		"an iteration began, set by the program"},
	{EventEpoch, "epoch", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldFlags, FieldTag, FieldCount},
		"an epoch began, set by the program"},
	{EventLost, "lost", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldFlags, FieldCount, FieldSize, FieldHandle},
		"count records were dropped, size - 1 of which ended memory (0 unknown), all by the order number in handle (0 unknown)"},
	{EventCreate, "create", 1, objectFields,
		"an object that owns memory came to be or was noticed; a context of addr 0 is the device's primary one"},
	{EventDestroy, "destroy", 1, objectFields,
		"an object ended, and with it what it owned; with a status, the call failed and it lives on"},
	{EventReserve, "reserve", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldDevice, FieldAddr,
		FieldSize, FieldFlags, FieldAllocated, FieldObject},
		"what a pool holds from its device: size in all, allocated of it in use"},
	{EventLaunch, "launch", 1, objectFields, "a graph was launched by a process whose graphs allocate memory"},
	{EventSample, "sample", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldDevice, FieldSize, FieldFlags,
		FieldAllocated, FieldReserved, FieldCount, FieldName},
		"what the device reports in use: size in all, allocated by this process, reserved by the driver, count by other processes"},
	{EventName, "name", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldFlags, FieldAddr, FieldSize, FieldHandle,
		FieldCategory, FieldName},
		"what a framework calls the block that holds addr, from the block's beginning; or its object at handle, with addr 0"},
	{EventWait, "wait", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldDevice, FieldAddr, FieldSize, FieldStream,
		FieldFlags, FieldHandle},
		"a framework's block, whose free follows, waits for the event handle on a stream that used it; addr 0: freed while a graph was captured"},
	{EventComplete, "complete", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldFlags, FieldHandle},
		"an event that blocks waited for is complete"},
	{EventEmptyCache, "emptycache", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldDevice, FieldFlags, FieldStack,
		FieldPyStack, FieldTag, FieldCount},
		"the framework's allocator was told to give back what it keeps (emptyCache), or has done so"},
	{EventAsk, "ask", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldLevel, FieldAPI, FieldRuntime, FieldDevice,
		FieldSize, FieldStatus, FieldFlags, FieldStack, FieldPyStack, FieldTag,
		FieldAllocated}, "the program asked how much is free: the device has size, of which allocated was free"},
	{EventPool, "pool", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldDevice, FieldFlags, FieldCount, FieldPool},
		"the framework's allocator begins to take blocks from a private pool, or ends"},
	{EventSetting, "setting", 1, []Field{FieldSeq, FieldTime, FieldThread, FieldDevice, FieldFlags, FieldName,
		FieldCount},
		"settings as passed to the framework's allocator; per_process_memory_fraction has a value, of device"},
}

// String returns the kind's name as it appears in the text form.
func (k EventKind) String() string {
	if int(k) < len(EventSpecs) {
		return EventSpecs[k].Name
	}
	return "unknown"
}

// Gather copies one field of all events into values, which is as long as events. Signed fields become two's complement.
func Gather(values []uint64, f Field, events []Event) { gather(values, f, events) }

// Scatter copies values into one field of the events and reports whether every value fits the field.
func Scatter(values []uint64, f Field, events []Event) (fits bool) { return scatter(values, f, events) }
