package trace

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// Module is a loaded object file: the code addresses [Start, End) belong to it; Base is what to subtract to get
// addresses inside the file.
type Module struct {
	ID               ModuleID
	Start, End, Base uint64
	Path             string
	BuildID          string // hexadecimal; empty if the file has none
	Size             uint64 // bytes of the file when it was met; 0 unknown
	ModTime          int64  // of the file then, Unix nanoseconds; 0 unknown
}

// Thread is a thread of the program.
type Thread struct {
	ID   ThreadID
	TID  int32 // the kernel's number
	Name string
}

// Device is a GPU as the program sees it.
type Device struct {
	Index      int16 // ordinal in the process
	Name, UUID string
	TotalBytes uint64
}

// Tables is the dictionary of a trace. It grows while the trace is read; look-ups never fail: an unknown id returns the
// zero value. The zero value is an empty dictionary. Slices that it returns belong to it and must not be changed.
type Tables struct {
	strings  map[StringID]string
	stacks   map[StackID]nativeFrames
	pystacks map[StackID]pyFrames
	codes    map[CodeID]Code
	symbols  map[symbolKey][]SymbolFrame
	threads  map[ThreadID]Thread
	devices  []Device   // by index
	modules  []Module   // as they came; an address belongs to the last one that covers it
	shifts   []uint64   // how far each of them was moved, see addresses.go
	reused   uint64     // how many were
	inFile   addressMap // modules by addresses as the file has them
	inStacks addressMap // the same by those that stacks have here
	unmoved  map[StackID][]uint64

	frames       []uint64      // tail of the arena that stack frames are cut from
	pyframes     []PyFrame     // the same for Python's
	symbolFrames []SymbolFrame // and for symbols
	lastFile     string        // of the code object added last; many in a row are of one file
	log          []tableEntry  // every entry as it came, for Entry
}

type nativeFrames struct {
	frames []uint64
	end    StackEnd
}

type pyFrames struct {
	frames []PyFrame
	end    StackEnd
}

// tableEntry is a string, Stack, PyStack or Code (id only), Module, Thread, Device or Symbol, in the order of arrival.
type tableEntry struct {
	kind  entryKind
	id    uint32
	value any // Module, Thread, Device, Symbol: the value as it came, since a later entry may replace it
}

// String is an entry of the dictionary: a string and its id.
type String struct {
	ID    StringID
	Value string
}

// Entries returns how many entries of the file the dictionary has, those included that later ones replaced.
func (t *Tables) Entries() int { return len(t.log) }

// Entry returns one of them, by its place in the file: a String, Stack, PyStack, Code, Module, Thread, Device or
// Symbol, as the file has it.
func (t *Tables) Entry(at int) any {
	e := &t.log[at]
	switch e.kind {
	case entryString:
		return String{StringID(e.id), t.strings[StringID(e.id)]}
	case entryStack:
		id := StackID(e.id)
		return Stack{ID: id, Frames: t.rawStack(id), End: t.StackEnd(id)}
	case entryPyStack:
		frames, end := t.PyStack(StackID(e.id))
		return PyStack{ID: StackID(e.id), Frames: frames, End: end}
	case entryCode:
		return t.codes[CodeID(e.id)]
	}
	return e.value
}

// AddString defines a string. The first definition of an id stays.
func (t *Tables) AddString(id StringID, s string) {
	if _, known := t.strings[id]; known {
		return
	}
	if t.strings == nil {
		t.strings = make(map[StringID]string)
	}
	t.strings[id] = s
	t.log = append(t.log, tableEntry{kind: entryString, id: uint32(id)})
}

// AddStack defines a stack; its frames are copied. The first definition of an id stays.
func (t *Tables) AddStack(s Stack) {
	if _, known := t.stacks[s.ID]; known {
		return
	}
	if t.stacks == nil {
		t.stacks = make(map[StackID]nativeFrames)
	}
	frames := s.Frames
	if t.reused > 0 {
		frames = t.moved(frames)
	}
	t.stacks[s.ID] = nativeFrames{keep(&t.frames, frames), s.End}
	if t.reused > 0 && !slices.Equal(frames, s.Frames) {
		if t.unmoved == nil {
			t.unmoved = make(map[StackID][]uint64)
		}
		t.unmoved[s.ID] = keep(&t.frames, s.Frames)
	}
	t.log = append(t.log, tableEntry{kind: entryStack, id: uint32(s.ID)})
}

// AddPyStack defines a Python stack; its frames are copied. The first definition of an id stays.
func (t *Tables) AddPyStack(s PyStack) {
	if _, known := t.pystacks[s.ID]; known {
		return
	}
	if t.pystacks == nil {
		t.pystacks = make(map[StackID]pyFrames)
	}
	t.pystacks[s.ID] = pyFrames{keep(&t.pyframes, s.Frames), s.End}
	t.log = append(t.log, tableEntry{kind: entryPyStack, id: uint32(s.ID)})
}

// AddCode defines a Python code object; its line table is copied. The first definition of an id stays.
func (t *Tables) AddCode(c Code) {
	if _, known := t.codes[c.ID]; known {
		return
	}
	if t.codes == nil {
		t.codes = make(map[CodeID]Code)
	}
	if c.File == t.lastFile {
		c.File = t.lastFile
	}
	t.lastFile = c.File
	c.Lines = slices.Clone(c.Lines)
	t.codes[c.ID] = c
	t.log = append(t.log, tableEntry{kind: entryCode, id: uint32(c.ID)})
}

// keep copies items into an arena, whose pieces grow with what is already held, and returns the copy.
func keep[T any](arena *[]T, items []T) []T {
	if cap(*arena)-len(*arena) < len(items) {
		*arena = make([]T, 0, max(len(items), min(2*cap(*arena), 1<<16), 64))
	}
	start := len(*arena)
	*arena = append(*arena, items...)
	return (*arena)[start:len(*arena):len(*arena)]
}

// AddModule records a loaded object file.
func (t *Tables) AddModule(m Module) {
	i := len(t.modules)
	shift := t.shiftOf(m, t.inFile.cover(m.Start, m.End, i))
	t.inStacks.cover(m.Start+shift, m.End+shift, i)
	t.modules = append(t.modules, m)
	t.shifts = append(t.shifts, shift)
	t.log = append(t.log, tableEntry{kind: entryModule, value: m})
}

// AddThread records a thread, or its new name.
func (t *Tables) AddThread(th Thread) {
	if t.threads == nil {
		t.threads = make(map[ThreadID]Thread)
	}
	t.threads[th.ID] = th
	t.log = append(t.log, tableEntry{kind: entryThread, value: th})
}

// AddDevice records a device; a later entry with the same index replaces it.
func (t *Tables) AddDevice(d Device) {
	i, known := slices.BinarySearchFunc(t.devices, d.Index, func(have Device, index int16) int {
		return int(have.Index) - int(index)
	})
	if known {
		t.devices[i] = d
	} else {
		t.devices = slices.Insert(t.devices, i, d)
	}
	t.log = append(t.log, tableEntry{kind: entryDevice, value: d})
}

// String returns an interned string, "" for an unknown id.
func (t *Tables) String(id StringID) string { return t.strings[id] }

// Stack returns the frames of a stack, innermost first; nil for an unknown id.
func (t *Tables) Stack(id StackID) []uint64 { return t.stacks[id].frames }

// StackEnd returns why a native stack ends where it does.
func (t *Tables) StackEnd(id StackID) StackEnd { return t.stacks[id].end }

// PyStack returns the frames of a Python stack, innermost first, and why it ends where it does; nil for an unknown id.
func (t *Tables) PyStack(id StackID) ([]PyFrame, StackEnd) {
	s := t.pystacks[id]
	return s.frames, s.end
}

// Code returns a Python code object.
func (t *Tables) Code(id CodeID) (c Code, ok bool) {
	c, ok = t.codes[id]
	return c, ok
}

// Codes yields the Python code objects, in no order.
func (t *Tables) Codes() iter.Seq[Code] { return maps.Values(t.codes) }

// Sizes returns how many native stacks, Python stacks and Python code objects there are.
func (t *Tables) Sizes() (stacks, pystacks, codes int) {
	return len(t.stacks), len(t.pystacks), len(t.codes)
}

// Thread returns a thread.
func (t *Tables) Thread(id ThreadID) (th Thread, ok bool) {
	th, ok = t.threads[id]
	return th, ok
}

// Devices returns the devices in order of their index.
func (t *Tables) Devices() []Device { return t.devices }

// Modules returns the modules in the order in which they were recorded.
func (t *Tables) Modules() []Module { return t.modules }

// Threads returns the threads in order of their id.
func (t *Tables) Threads() []Thread {
	threads := make([]Thread, 0, len(t.threads))
	for _, th := range t.threads {
		threads = append(threads, th)
	}
	slices.SortFunc(threads, func(a, b Thread) int { return cmp.Compare(a.ID, b.ID) })
	return threads
}
